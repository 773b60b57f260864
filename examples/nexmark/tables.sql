-- Nexmark's tables over the files that `python -m benchmarks.nexmark --events 100000 --out nexmark-data` writes.
CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
  `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'nexmark-data/person', 'format' = 'parquet');

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
  `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'nexmark-data/auction', 'format' = 'parquet');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
  `dateTime` TIMESTAMP(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'nexmark-data/bid', 'format' = 'parquet');

-- For q13: something to look up.
CREATE TABLE side_input (
  key BIGINT, word STRING
) WITH ('connector' = 'filesystem', 'path' = 'nexmark-data/side_input', 'format' = 'csv');

-- For q14: how often a letter is in a string.
CREATE TEMPORARY FUNCTION count_char AS 'benchmarks.nexmark.functions.count_char' LANGUAGE PYTHON;
