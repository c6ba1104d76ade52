/** The lifetime of a stored value: as long as the browser's, or as that of one tab, which keeps it when the page is loaded again. */
type StoredFor = "browser" | "tab";

/** Reads the value that the browser stores under the key; null if it stores nothing, or something else. */
export function readStoredJson<Value>(
  key: string,
  isExpected: (stored: unknown) => stored is Value,
  storedFor: StoredFor = "browser",
): Value | null {
  try {
    const stored: unknown = JSON.parse(storageFor(storedFor).getItem(key) ?? "null");
    return isExpected(stored) ? stored : null;
  } catch {
    return null;
  }
}

/** Stores a value; null removes it. A value that does not fit, or may not be stored, lasts until the page is left. */
export function writeStoredJson(key: string, value: unknown, storedFor: StoredFor = "browser"): void {
  try {
    if (value === null) storageFor(storedFor).removeItem(key);
    else storageFor(storedFor).setItem(key, JSON.stringify(value));
  } catch {
    // The storage is full or forbidden.
  }
}

/** Throws where pages may not store anything. */
function storageFor(storedFor: StoredFor): Storage {
  return storedFor === "tab" ? sessionStorage : localStorage;
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
