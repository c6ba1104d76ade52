const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SMALL_NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** Returns 1,234; 12; 1.2; 0.05 */
export function formatNumber(value: number): string {
  return Math.abs(value) < 10 ? SMALL_NUMBER.format(value) : NUMBER.format(value);
}

/** Returns 1,234, with all digits. */
export function formatCount(count: number): string {
  return NUMBER.format(count);
}

/** Returns 0.8 ms; 340 ms; 1.2 s; 3 min; 5 h; 12 d */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${formatNumber(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 60) return `${formatNumber(seconds)} s`;
  if (seconds < 3_600) return `${NUMBER.format(seconds / 60)} min`;
  return seconds < 172_800 ? `${NUMBER.format(seconds / 3_600)} h` : `${NUMBER.format(seconds / 86_400)} d`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Returns 512 B; 1.5 MB */
export function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${formatNumber(bytes / 1024 ** power)} ${UNITS[power]}`;
}

/** Returns the time in the browser's time zone: 2026-11-22 14:05:09 */
export function formatTime(time: string | number): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
}
