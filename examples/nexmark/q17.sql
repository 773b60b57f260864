-- Statistics of each auction and day.
SELECT auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS dt,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 10000) AS low_bids,
  COUNT(*) FILTER (WHERE price >= 1000000) AS high_bids,
  MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid
GROUP BY auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')
