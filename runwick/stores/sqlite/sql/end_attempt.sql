-- Attempts that succeeded, for the history. What their hot rows know comes from there.
-- Sixteen at a time, because starting a statement costs more than a row; rows without a job are passed over. Their ids
-- come together, because binding bytes costs more than cutting them out.
-- takes: position of the first, outcome, code, ended_at_ms, attempt ids (16 bytes each),
--        then 16 times: job, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage
INSERT INTO runwick_attempt (
  position, job, kind, attempt_id, claim, generation, number, outcome, code, begun_at_ms, ended_at_ms, wall_us, cpu_us,
  rss_peak_bytes, usage
)
SELECT
  ?1 + ended.column1, hot.job, hot.kind, substr(?5, 16 * ended.column1 + 1, 16), hot.claim, hot.generation,
  hot.attempts, ?2, ?3, coalesce(ended.column3, hot.begun_at_ms), ?4, ended.column4, ended.column5, ended.column6,
  ended.column7
FROM (VALUES
  ( 0,   ?6,   ?7,   ?8,   ?9,  ?10,  ?11),
  ( 1,  ?12,  ?13,  ?14,  ?15,  ?16,  ?17),
  ( 2,  ?18,  ?19,  ?20,  ?21,  ?22,  ?23),
  ( 3,  ?24,  ?25,  ?26,  ?27,  ?28,  ?29),
  ( 4,  ?30,  ?31,  ?32,  ?33,  ?34,  ?35),
  ( 5,  ?36,  ?37,  ?38,  ?39,  ?40,  ?41),
  ( 6,  ?42,  ?43,  ?44,  ?45,  ?46,  ?47),
  ( 7,  ?48,  ?49,  ?50,  ?51,  ?52,  ?53),
  ( 8,  ?54,  ?55,  ?56,  ?57,  ?58,  ?59),
  ( 9,  ?60,  ?61,  ?62,  ?63,  ?64,  ?65),
  (10,  ?66,  ?67,  ?68,  ?69,  ?70,  ?71),
  (11,  ?72,  ?73,  ?74,  ?75,  ?76,  ?77),
  (12,  ?78,  ?79,  ?80,  ?81,  ?82,  ?83),
  (13,  ?84,  ?85,  ?86,  ?87,  ?88,  ?89),
  (14,  ?90,  ?91,  ?92,  ?93,  ?94,  ?95),
  (15,  ?96,  ?97,  ?98,  ?99, ?100, ?101)
) AS ended
CROSS JOIN runwick_hot AS hot ON hot.job = ended.column2;
