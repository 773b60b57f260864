-- Bounded side input: each bid with a word that is looked up in a file.
SELECT b.auction, b.bidder, b.price, b.`dateTime`, s.word
FROM (SELECT *, PROCTIME() AS p FROM bid) AS b
JOIN side_input FOR SYSTEM_TIME AS OF b.p AS s ON MOD(b.auction, 100) = s.key
