-- Winning bids: the highest one of each auction, the earlier one of two.
SELECT id, seller, category, bidder, price, bidTime
FROM (
  SELECT a.id, a.seller, a.category, b.bidder, b.price, b.`dateTime` AS bidTime,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.`dateTime` ASC) AS place
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.`dateTime` BETWEEN a.`dateTime` AND a.expires
)
WHERE place = 1
