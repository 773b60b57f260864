-- The average winning price of each seller's last 10 auctions. (Flink cannot: OVER takes no updates there.)
SELECT seller, expires, id,
  AVG(price) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT a.id, a.seller, a.expires, MAX(b.price) AS price
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.`dateTime` BETWEEN a.`dateTime` AND a.expires
  GROUP BY a.id, a.seller, a.expires
)
