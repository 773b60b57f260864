-- Times in which a bidder's prices fall and then rise again.
SELECT bidder, began, lowest, ended
FROM bid MATCH_RECOGNIZE (
  PARTITION BY bidder ORDER BY `dateTime`
  MEASURES FIRST_BID.`dateTime` AS began, LAST(FALLING.`dateTime`) AS lowest, LAST(RISING.`dateTime`) AS ended
  ONE ROW PER MATCH AFTER MATCH SKIP TO LAST RISING
  PATTERN (FIRST_BID FALLING+ RISING)
  DEFINE
    FALLING AS (LAST(FALLING.price, 1) IS NULL AND FALLING.price < FIRST_BID.price)
      OR FALLING.price < LAST(FALLING.price, 1),
    RISING AS RISING.price > LAST(FALLING.price, 1)
)
