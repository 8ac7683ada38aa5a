-- Attempts that succeeded, for the history. What their hot rows know comes from there.
-- Sixteen at a time, because starting a statement costs more than a row; rows without a job are passed over.
-- takes: position of the first, outcome, code, ended_at_ms,
--        then 16 times: job, attempt_id, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage
INSERT INTO runwick_attempt (
  position, job, kind, attempt_id, claim, generation, number, outcome, code, begun_at_ms, ended_at_ms, wall_us, cpu_us,
  rss_peak_bytes, usage
)
SELECT
  ?1 + ended.column1, hot.job, hot.kind, ended.column3, hot.claim, hot.generation, hot.attempts, ?2, ?3,
  coalesce(ended.column4, hot.begun_at_ms), ?4, ended.column5, ended.column6, ended.column7, ended.column8
FROM (VALUES
  ( 0,   ?5,   ?6,   ?7,   ?8,   ?9,  ?10,  ?11),
  ( 1,  ?12,  ?13,  ?14,  ?15,  ?16,  ?17,  ?18),
  ( 2,  ?19,  ?20,  ?21,  ?22,  ?23,  ?24,  ?25),
  ( 3,  ?26,  ?27,  ?28,  ?29,  ?30,  ?31,  ?32),
  ( 4,  ?33,  ?34,  ?35,  ?36,  ?37,  ?38,  ?39),
  ( 5,  ?40,  ?41,  ?42,  ?43,  ?44,  ?45,  ?46),
  ( 6,  ?47,  ?48,  ?49,  ?50,  ?51,  ?52,  ?53),
  ( 7,  ?54,  ?55,  ?56,  ?57,  ?58,  ?59,  ?60),
  ( 8,  ?61,  ?62,  ?63,  ?64,  ?65,  ?66,  ?67),
  ( 9,  ?68,  ?69,  ?70,  ?71,  ?72,  ?73,  ?74),
  (10,  ?75,  ?76,  ?77,  ?78,  ?79,  ?80,  ?81),
  (11,  ?82,  ?83,  ?84,  ?85,  ?86,  ?87,  ?88),
  (12,  ?89,  ?90,  ?91,  ?92,  ?93,  ?94,  ?95),
  (13,  ?96,  ?97,  ?98,  ?99, ?100, ?101, ?102),
  (14, ?103, ?104, ?105, ?106, ?107, ?108, ?109),
  (15, ?110, ?111, ?112, ?113, ?114, ?115, ?116)
) AS ended
CROSS JOIN runwick_hot AS hot ON hot.job = ended.column2;
