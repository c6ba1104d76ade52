import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** Faults that pass by themselves while a server starts; a wrong password or name does not. */
const PASSING = [
  "ECONNREFUSED",
  "ECONNRESET",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  // No such socket, and no such name: that of a container that has not been started yet.
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "57P03",
  "53300",
];
const PATIENCE_MS = 60_000;
const UNTRUSTED =
  "the authority that signed its certificate is not trusted here: name the file that holds it with sslrootcert";
/** What pg says, in words of the protocol, of a server that asks for one. */
const NO_PASSWORD = "client password must be a string";
const WRITE_PASSWORD = "the server asks for a password, and the connection string has none";
/** What Node and pg say of TLS, in words that say what to do. */
const ADVICE: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "use the name that its certificate is for",
};

/** Waits for a database that is still starting, and says so; any other fault is told at once, in words. */
export async function awaitDatabase(
  url: string,
  setting: string,
  tell: (step: string) => void,
  patience = PATIENCE_MS,
): Promise<void> {
  const giveUpAt = performance.now() + patience;
  for (let pause = 100; ; pause = Math.min(pause * 2, 2000)) {
    const fault = await faultOf(url);
    if (!fault) return;
    const place = new URL(url.replace("@/", "@localhost/")).host;
    const passing = PASSING.includes(fault.code ?? "");
    if (!passing || performance.now() >= giveUpAt) {
      const advice = fault.message.includes(NO_PASSWORD) ? WRITE_PASSWORD : ADVICE[fault.code ?? ""];
      const reason = advice ? `${fault.message}; ${advice}` : fault.message;
      throw new Error(`The database at ${place} (${setting}) cannot be used: ${reason}`, { cause: fault });
    }
    if (pause === 100) tell(`waiting for the database at ${place} (${fault.message})`);
    await sleep(pause);
  }
}

async function faultOf(url: string): Promise<(Error & { code?: string }) | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    return null;
  } catch (error) {
    // A name with several addresses fails once for each.
    return error instanceof AggregateError ? error.errors[0] : (error as Error);
  } finally {
    await client.end().catch(() => {});
  }
}
