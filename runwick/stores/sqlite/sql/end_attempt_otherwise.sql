-- Attempts that did not succeed, all with the same outcome and code. As end_attempt, which is spared two columns.
-- takes: position of the first, outcome, code, ended_at_ms,
--        then 16 times: job, attempt_id, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage, delay_ms, death
INSERT INTO runwick_attempt (
  position, job, kind, attempt_id, claim, generation, number, outcome, code, begun_at_ms, ended_at_ms, wall_us, cpu_us,
  rss_peak_bytes, usage, delay_ms, death
)
SELECT
  ?1 + ended.column1, hot.job, hot.kind, ended.column3, hot.claim, hot.generation, hot.attempts, ?2, ?3,
  coalesce(ended.column4, hot.begun_at_ms), ?4, ended.column5, ended.column6, ended.column7, ended.column8,
  ended.column9, ended.column10
FROM (VALUES
  ( 0,   ?5,   ?6,   ?7,   ?8,   ?9,  ?10,  ?11,  ?12,  ?13),
  ( 1,  ?14,  ?15,  ?16,  ?17,  ?18,  ?19,  ?20,  ?21,  ?22),
  ( 2,  ?23,  ?24,  ?25,  ?26,  ?27,  ?28,  ?29,  ?30,  ?31),
  ( 3,  ?32,  ?33,  ?34,  ?35,  ?36,  ?37,  ?38,  ?39,  ?40),
  ( 4,  ?41,  ?42,  ?43,  ?44,  ?45,  ?46,  ?47,  ?48,  ?49),
  ( 5,  ?50,  ?51,  ?52,  ?53,  ?54,  ?55,  ?56,  ?57,  ?58),
  ( 6,  ?59,  ?60,  ?61,  ?62,  ?63,  ?64,  ?65,  ?66,  ?67),
  ( 7,  ?68,  ?69,  ?70,  ?71,  ?72,  ?73,  ?74,  ?75,  ?76),
  ( 8,  ?77,  ?78,  ?79,  ?80,  ?81,  ?82,  ?83,  ?84,  ?85),
  ( 9,  ?86,  ?87,  ?88,  ?89,  ?90,  ?91,  ?92,  ?93,  ?94),
  (10,  ?95,  ?96,  ?97,  ?98,  ?99, ?100, ?101, ?102, ?103),
  (11, ?104, ?105, ?106, ?107, ?108, ?109, ?110, ?111, ?112),
  (12, ?113, ?114, ?115, ?116, ?117, ?118, ?119, ?120, ?121),
  (13, ?122, ?123, ?124, ?125, ?126, ?127, ?128, ?129, ?130),
  (14, ?131, ?132, ?133, ?134, ?135, ?136, ?137, ?138, ?139),
  (15, ?140, ?141, ?142, ?143, ?144, ?145, ?146, ?147, ?148)
) AS ended
CROSS JOIN runwick_hot AS hot ON hot.job = ended.column2;
