-- Hot items: which auctions had the most bids in the last 10 seconds, every 2 seconds?
WITH counted AS (
  SELECT auction, window_start, window_end, COUNT(*) AS num
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
),
most AS (
  SELECT window_start, window_end, MAX(num) AS num FROM counted GROUP BY window_start, window_end
)
SELECT c.auction, c.num, c.window_end
FROM counted AS c JOIN most AS m
  ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num = m.num
