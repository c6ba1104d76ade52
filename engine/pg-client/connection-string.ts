const VERIFYING_MODES = ["require", "verify-ca", "verify-full"];
const SSL_MODES = ["disable", "no-verify", ...VERIFYING_MODES];

/**
 * The same place in pg's own words. By itself pg takes `require` and `verify-ca` for `verify-full`; here they mean what
 * they mean to libpq, and so to psql and PostgREST.
 */
export function toPgConnectionString(url: string): string {
  const parameters = parametersOf(url);
  if (!VERIFYING_MODES.includes(parameters.get("sslmode") ?? "") || parameters.has("uselibpqcompat")) return url;
  // The authorities that Node knows, which pg asks without being told.
  if (parameters.get("sslrootcert") === "system") parameters.delete("sslrootcert");
  parameters.set("uselibpqcompat", "true");
  return `${url.split("?", 1)[0]}?${parameters}`;
}

/** What is wrong with how the string asks for TLS; null when it can be tried. */
export function findTlsError(url: string, canRead: (file: string) => boolean): string | null {
  const parameters = parametersOf(url);
  const mode = parameters.get("sslmode");
  if (mode !== null && !SSL_MODES.includes(mode)) {
    return `sslmode is one of ${SSL_MODES.join(", ")}: what is encrypted only when the server likes to protects nobody`;
  }
  const root = parameters.get("sslrootcert");
  if (mode === "verify-ca" && (root === null || root === "system"))
    return "sslmode=verify-ca needs a file in sslrootcert";
  const missing = ["sslrootcert", "sslcert", "sslkey"].find((name) => {
    const file = parameters.get(name);
    return file !== null && !(name === "sslrootcert" && file === "system") && !canRead(file);
  });
  if (missing) return `the file of ${missing} must be one that can be read`;
  if (parameters.has("sslcert") !== parameters.has("sslkey")) return "sslcert and sslkey belong together";
  return null;
}

function parametersOf(url: string): URLSearchParams {
  return new URLSearchParams(url.split("?").slice(1).join("?"));
}
