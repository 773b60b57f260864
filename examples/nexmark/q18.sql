-- The last bid of each user on each auction.
SELECT auction, bidder, price, channel, `dateTime`
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS place FROM bid
)
WHERE place <= 1
