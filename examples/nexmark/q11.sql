-- User sessions: how many bids did a user make each time they were active?
SELECT bidder, COUNT(*) AS bids,
  SESSION_START(`dateTime`, INTERVAL '10' SECOND) AS starttime, SESSION_END(`dateTime`, INTERVAL '10' SECOND) AS endtime
FROM bid
GROUP BY bidder, SESSION(`dateTime`, INTERVAL '10' SECOND)
