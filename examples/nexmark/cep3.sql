-- Prices that drop by more than 50 within five seconds.
SELECT bidder, dropped, difference
FROM bid MATCH_RECOGNIZE (
  PARTITION BY bidder ORDER BY `dateTime`
  MEASURES LOWER_ONE.`dateTime` AS dropped, HIGH.price - LOWER_ONE.price AS difference
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (HIGH BETWEEN_THEM* LOWER_ONE) WITHIN INTERVAL '5' SECOND
  DEFINE
    BETWEEN_THEM AS BETWEEN_THEM.price > HIGH.price - 50,
    LOWER_ONE AS LOWER_ONE.price < HIGH.price - 50
)
