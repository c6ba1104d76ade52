const VERIFYING_MODES = ["require", "verify-ca", "verify-full"];
const SSL_MODES = ["disable", "no-verify", ...VERIFYING_MODES];

/** The values of libpq's `target_session_attrs`. */
const SESSION_ATTRIBUTES = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const;
const LOAD_BALANCING = ["disable", "random"];
const DEFAULT_PORT = "5432";
/** The parts are the scheme with `//`, user and password with `@`, hosts with ports, the rest of the path, and parameters with `?`. */
const PARTS = /^(\w+:\/\/)([^/?]*@)?([^/?@]*)([^?]*)(\?.*)?$/;

export type SessionAttributes = (typeof SESSION_ATTRIBUTES)[number];

/** One server of a connection string. */
export type DatabaseServer = {
  /** The host and, if the connection string has one, the port, for messages. */
  readonly name: string;
  /** The connection string with this server only. */
  readonly url: string;
};

type ServerList = {
  readonly servers: readonly DatabaseServer[];
  readonly wanted: SessionAttributes;
  /** True if the servers are tried in random order. */
  readonly isBalanced: boolean;
};

/** Parses the hosts of a connection string; commas separate several of them, as in libpq. */
export function parseServers(url: string): ServerList {
  const [, scheme = "", user = "", , path = ""] = PARTS.exec(url) ?? [];
  const parameters = parametersOf(url);
  const addresses = addressesOf(url);
  const wanted = (parameters.get("target_session_attrs") ?? "any") as SessionAttributes;
  const isBalanced = parameters.get("load_balance_hosts") === "random";
  if (addresses.length === 1) return { servers: [{ name: nameOf(addresses[0]!), url }], wanted, isBalanced };
  for (const name of ["target_session_attrs", "load_balance_hosts"]) parameters.delete(name);
  const servers = addresses.map(({ host, port }) => {
    const own = new URLSearchParams(parameters);
    own.set("host", host);
    own.set("port", port || DEFAULT_PORT);
    return { name: nameOf({ host, port }), url: `${scheme}${user}${path || "/"}?${own}` };
  });
  return { servers, wanted, isBalanced };
}

/** Returns the error in the hosts and their parameters; null if they are valid. */
export function findServersError(url: string): string | null {
  const parameters = parametersOf(url);
  const wanted = parameters.get("target_session_attrs");
  if (wanted !== null && !(SESSION_ATTRIBUTES as readonly string[]).includes(wanted)) {
    return `target_session_attrs is one of ${SESSION_ATTRIBUTES.join(", ")}`;
  }
  const balancing = parameters.get("load_balance_hosts");
  if (balancing !== null && !LOAD_BALANCING.includes(balancing)) {
    return `load_balance_hosts is one of ${LOAD_BALANCING.join(", ")}`;
  }
  const hosts = parameters.get("host")?.split(",");
  const ports = parameters.get("port")?.split(",");
  if (ports && ports.length > 1 && ports.length !== (hosts ?? addressesOf(url)).length) {
    return "port has one number, or as many as there are hosts, separated by commas";
  }
  const addresses = addressesOf(url);
  if (addresses.length > 1 && addresses.some(({ host }) => host === "")) return "no host between commas is empty";
  const isPort = (port: string) => /^\d*$/.test(port) && (port === "" || (Number(port) >= 1 && Number(port) <= 65_535));
  return addresses.every(({ port }) => isPort(port)) ? null : "a port is a number from 1 to 65535";
}

/** Returns the connection string with its first host only, which a URL parser accepts. */
export function withFirstHost(url: string): string {
  return url.replace(PARTS, (whole, scheme: string, user = "", hosts = "", path = "", query = "") => {
    return hosts.includes(",") ? `${scheme}${user}${hosts.split(",")[0]}${path}${query}` : whole;
  });
}

/** Returns the connection string for sessions that write: by default it selects a primary. */
export function toPrimaryUrl(url: string): string {
  if (parametersOf(url).has("target_session_attrs")) return url;
  return `${url}${url.includes("?") ? "&" : "?"}target_session_attrs=primary`;
}

/** Returns the connection string with another user. */
export function withLogin(
  url: string,
  { name, password }: { readonly name: string; readonly password: string },
): string {
  const [, scheme = "", , hosts = "", path = ""] = PARTS.exec(url) ?? [];
  const parameters = parametersOf(url);
  for (const parameter of ["user", "password"]) parameters.delete(parameter);
  return `${scheme}${encodeURIComponent(name)}:${encodeURIComponent(password)}@${hosts}${path}?${parameters}`;
}

/** The address of a server; an empty port stands for Postgres's default. */
type ServerAddress = { readonly host: string; readonly port: string };

/** The parameters `host` and `port` take precedence over the hosts of the URL. */
function addressesOf(url: string): ServerAddress[] {
  const parameters = parametersOf(url);
  const inUrl = (PARTS.exec(url)?.[3] ?? "").split(",").map(parseAddress);
  const hosts = parameters.get("host")?.split(",") ?? inUrl.map(({ host }) => host);
  const ports = parameters.get("port")?.split(",") ?? [];
  return hosts.map((host, index) => ({
    host,
    port: (ports.length === 1 ? ports[0] : ports[index]) || inUrl[index]?.port || "",
  }));
}

/** Parses `host:port`, `[IPv6]:port`, or the percent-encoded folder of a socket. */
function parseAddress(text: string): ServerAddress {
  const [, bracketed, plain = "", port = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/.exec(text) ?? [];
  return { host: bracketed ?? (/%2f/i.test(plain) ? decodeURIComponent(plain) : plain), port };
}

function nameOf({ host, port }: ServerAddress): string {
  const name = host.includes(":") ? `[${host}]` : host || "localhost";
  return port === "" ? name : `${name}:${port}`;
}

/**
 * Converts the TLS parameters to pg's meaning: pg treats `require` and `verify-ca` as `verify-full`; here they have the same
 * meaning as in libpq, psql and PostgREST.
 */
export function toPgConnectionString(url: string): string {
  const parameters = parametersOf(url);
  if (!VERIFYING_MODES.includes(parameters.get("sslmode") ?? "") || parameters.has("uselibpqcompat")) return url;
  // Node's default certificate authorities, which pg uses anyway.
  if (parameters.get("sslrootcert") === "system") parameters.delete("sslrootcert");
  parameters.set("uselibpqcompat", "true");
  return `${url.split("?", 1)[0]}?${parameters}`;
}

/** Returns the error in the TLS parameters of the connection string; null if they are valid. */
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
