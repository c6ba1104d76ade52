const VERIFYING_MODES = ["require", "verify-ca", "verify-full"];
const SSL_MODES = ["disable", "no-verify", ...VERIFYING_MODES];

/**
 * Converts the TLS parameters to pg's meaning: pg treats `require` and `verify-ca` as `verify-full`; here they mean the
 * same as in libpq, and so as in psql and PostgREST.
 */
export function toPgConnectionString(url: string): string {
  const parameters = parametersOf(url);
  if (!VERIFYING_MODES.includes(parameters.get("sslmode") ?? "") || parameters.has("uselibpqcompat")) return url;
  // Node's default certificate authorities, which pg uses anyway.
  if (parameters.get("sslrootcert") === "system") parameters.delete("sslrootcert");
  parameters.set("uselibpqcompat", "true");
  return `${url.split("?", 1)[0]}?${parameters}`;
}

/** The error in the TLS parameters of the connection string; null if they are valid. */
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
