-- The ten highest bids of each auction, with their places.
SELECT auction, bidder, price, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid
)
WHERE place <= 10
