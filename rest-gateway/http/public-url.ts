/** What stands before a path in links: the address that clients use; nothing where only they know it. */
export function publicBaseUrl(publicUrl: string | null): string {
  return publicUrl?.replace(/\/$/, "") ?? "";
}

/** The same without its host, for headers that are read from where the request went: a proxy may serve us below a path. */
export function publicBasePath(publicUrl: string | null): string {
  return publicUrl === null ? "" : new URL(publicUrl).pathname.replace(/\/$/, "");
}
