"""Pure decisions: functions of contract values and one throw of the dice. They reach no store, no clock, no loop."""
