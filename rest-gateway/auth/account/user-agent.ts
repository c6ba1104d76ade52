const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];
const MAX_LENGTH = 60;

/** `Firefox on Linux`; programs by the beginning of what they send. */
export function describeUserAgent(userAgent: string | null): string {
  if (userAgent === null || userAgent.trim() === "") return "Unknown client";
  const nameIn = (names: typeof BROWSERS) => names.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null;
  const [browser, system] = [nameIn(BROWSERS), nameIn(SYSTEMS)];
  if (browser !== null) return system === null ? browser : `${browser} on ${system}`;
  return userAgent.length <= MAX_LENGTH ? userAgent : `${userAgent.slice(0, MAX_LENGTH)}…`;
}
