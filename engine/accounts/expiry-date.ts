/** `2027-12-31`, or with a time of day; null if it is no valid date. */
export function parseExpiryDate(text: string): Date | null {
  if (!/^\d{4}-\d\d-\d\d([T ]|$)/.test(text)) return null;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) || !isCalendarDay(text.slice(0, 10)) ? null : moment;
}

/** JavaScript reads the 30th of February as the 2nd of March. */
function isCalendarDay(day: string): boolean {
  return new Date(day).toISOString().startsWith(day);
}
