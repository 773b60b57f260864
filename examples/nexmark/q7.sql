-- The highest bids of every 10 seconds.
SELECT b.auction, b.price, b.bidder, b.`dateTime`
FROM bid AS b JOIN (
  SELECT MAX(price) AS highest, window_end AS until
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) AS w
ON b.price = w.highest AND b.`dateTime` >= w.until - INTERVAL '10' SECOND AND b.`dateTime` < w.until
