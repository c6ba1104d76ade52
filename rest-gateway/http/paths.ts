/** The prefix of links in bodies: PUBLIC_URL, or nothing if it is not set. */
export function publicBaseUrl(publicUrl: string | null): string {
  return publicUrl?.replace(/\/$/, "") ?? "";
}

/** The path of PUBLIC_URL, for headers that are relative to the requested host: a proxy may add a path prefix. */
export function publicBasePath(publicUrl: string | null): string {
  return publicUrl === null ? "" : new URL(publicUrl).pathname.replace(/\/$/, "");
}

/** The path prefix of the table interface. */
export const TABLE_PREFIX = "/rest/v1";
