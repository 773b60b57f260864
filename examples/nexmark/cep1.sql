-- The longest times in which a bidder's average price stays below a limit, one after the other.
SELECT bidder, began, ended, average
FROM bid MATCH_RECOGNIZE (
  PARTITION BY bidder ORDER BY `dateTime`
  MEASURES FIRST(LOW.`dateTime`) AS began, LAST(LOW.`dateTime`) AS ended, AVG(LOW.price) AS average
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (LOW+ OTHER)
  DEFINE LOW AS AVG(LOW.price) < 100000
)
