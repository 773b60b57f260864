-- Bids of each user in every 10 seconds of processing time.
WITH now AS (SELECT *, PROCTIME() AS p FROM bid)
SELECT bidder, COUNT(*) AS bids, window_start, window_end
FROM TABLE(TUMBLE(TABLE now, DESCRIPTOR(p), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end
