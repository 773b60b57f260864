-- Pass through: what reading and writing costs.
SELECT auction, bidder, price, `dateTime`, extra FROM bid
