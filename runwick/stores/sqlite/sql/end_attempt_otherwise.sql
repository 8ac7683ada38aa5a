-- Attempts that did not succeed, all with the same outcome and code. As end_attempt, which is spared two columns.
-- takes: position of the first, outcome, code, ended_at_ms, attempt ids (16 bytes each),
--        then 16 times: job, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage, delay_ms, death
INSERT INTO runwick_attempt (
  position, job, kind, attempt_id, claim, generation, number, outcome, code, begun_at_ms, ended_at_ms, wall_us, cpu_us,
  rss_peak_bytes, usage, delay_ms, death
)
SELECT
  ?1 + ended.column1, hot.job, hot.kind, substr(?5, 16 * ended.column1 + 1, 16), hot.claim, hot.generation,
  hot.attempts, ?2, ?3, coalesce(ended.column3, hot.begun_at_ms), ?4, ended.column4, ended.column5, ended.column6,
  ended.column7, ended.column8, ended.column9
FROM (VALUES
  ( 0,   ?6,   ?7,   ?8,   ?9,  ?10,  ?11,  ?12,  ?13),
  ( 1,  ?14,  ?15,  ?16,  ?17,  ?18,  ?19,  ?20,  ?21),
  ( 2,  ?22,  ?23,  ?24,  ?25,  ?26,  ?27,  ?28,  ?29),
  ( 3,  ?30,  ?31,  ?32,  ?33,  ?34,  ?35,  ?36,  ?37),
  ( 4,  ?38,  ?39,  ?40,  ?41,  ?42,  ?43,  ?44,  ?45),
  ( 5,  ?46,  ?47,  ?48,  ?49,  ?50,  ?51,  ?52,  ?53),
  ( 6,  ?54,  ?55,  ?56,  ?57,  ?58,  ?59,  ?60,  ?61),
  ( 7,  ?62,  ?63,  ?64,  ?65,  ?66,  ?67,  ?68,  ?69),
  ( 8,  ?70,  ?71,  ?72,  ?73,  ?74,  ?75,  ?76,  ?77),
  ( 9,  ?78,  ?79,  ?80,  ?81,  ?82,  ?83,  ?84,  ?85),
  (10,  ?86,  ?87,  ?88,  ?89,  ?90,  ?91,  ?92,  ?93),
  (11,  ?94,  ?95,  ?96,  ?97,  ?98,  ?99, ?100, ?101),
  (12, ?102, ?103, ?104, ?105, ?106, ?107, ?108, ?109),
  (13, ?110, ?111, ?112, ?113, ?114, ?115, ?116, ?117),
  (14, ?118, ?119, ?120, ?121, ?122, ?123, ?124, ?125),
  (15, ?126, ?127, ?128, ?129, ?130, ?131, ?132, ?133)
) AS ended
CROSS JOIN runwick_hot AS hot ON hot.job = ended.column2;
