/** Reads the value that the browser stores under the key; null if it stores nothing, or something else. */
export function readStoredJson<Value>(key: string, isExpected: (stored: unknown) => stored is Value): Value | null {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
    return isExpected(stored) ? stored : null;
  } catch {
    return null;
  }
}

/** Stores a value; null removes it. A value that does not fit, or may not be stored, lasts until the page is left. */
export function writeStoredJson(key: string, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The storage is full or forbidden.
  }
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
