import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { signClaims } from "../comparison/sign-claims.ts";

export const BUCKET = "kept";

/** The possible contents of a name: digests, or null for no file. Several after a request whose outcome is unknown. */
type Possible = ReadonlySet<string | null>;

export type FileTraffic = {
  readonly acknowledged: () => number;
  readonly unknown: () => number;
  /** Descriptions of reads that returned impossible contents. */
  readonly wrong: readonly string[];
  stop(): Promise<void>;
  /** Reads every name again. */
  check(): Promise<void>;
};

const NAMES = 6;
const LARGE_BYTES = 3_000_000;
const SMALL_BYTES = 40_000;
const ATTEMPT_MS = 20_000;
/** The time in which a statement of the killed service may still run. */
const SETTLE_MS = 400;
const HEADERS = { authorization: `Bearer ${signClaims({ role: "service_role" })}`, "x-upsert": "true" };

/** Starts clients that upload, move, copy and delete; each knows the possible contents of its own names. */
export function startFileTraffic(urls: () => readonly string[], clients: number): FileTraffic {
  const state = { acknowledged: 0, unknown: 0, wrong: [] as string[], isOver: false };
  const all = Array.from({ length: clients }, (_, number) => new FileClient(`c${number}`, urls, state));
  const running = all.map((client) => client.run());
  return {
    acknowledged: () => state.acknowledged,
    unknown: () => state.unknown,
    wrong: state.wrong,
    async stop() {
      state.isOver = true;
      await Promise.all(running);
    },
    async check() {
      await Promise.all(all.map((client) => client.readAll()));
    },
  };
}

type TrafficState = { acknowledged: number; unknown: number; readonly wrong: string[]; isOver: boolean };
type Outcome = { readonly status: number; readonly body: Buffer } | null;

class FileClient {
  readonly #folder: string;
  readonly #urls: () => readonly string[];
  readonly #state: TrafficState;
  readonly #known = new Map<string, Possible>();

  constructor(folder: string, urls: () => readonly string[], state: TrafficState) {
    this.#folder = folder;
    this.#urls = urls;
    this.#state = state;
  }

  async run(): Promise<void> {
    const actions = [
      () => this.#upload(this.#name()),
      () => this.#upload(this.#name()),
      () => this.#resume(this.#name()),
      () => this.#remove(this.#name()),
      () => this.#transfer("move", this.#name(), this.#name()),
      () => this.#transfer("copy", this.#name(), this.#name()),
      () => this.#read(this.#name()),
    ];
    while (!this.#state.isOver) await actions[Math.floor(Math.random() * actions.length)]!();
  }

  async readAll(): Promise<void> {
    for (const name of this.#known.keys())
      if (!(await this.#read(name))) this.#state.wrong.push(`${name} cannot be read`);
  }

  #name(): string {
    return `${this.#folder}/${Math.floor(Math.random() * NAMES)}`;
  }

  #possible(name: string): Possible {
    return this.#known.get(name) ?? new Set([null]);
  }

  /** Records the contents of the names after a request that succeeded, was refused, or may have done either. */
  async #settle(outcome: Outcome, done: Readonly<Record<string, Possible>>): Promise<void> {
    if (outcome && outcome.status < 300) {
      this.#state.acknowledged++;
      for (const [name, possible] of Object.entries(done)) this.#known.set(name, possible);
    } else if (!outcome || outcome.status >= 500) {
      this.#state.unknown++;
      for (const [name, possible] of Object.entries(done))
        this.#known.set(name, new Set([...this.#possible(name), ...possible]));
      await sleep(SETTLE_MS);
    }
  }

  async #upload(name: string): Promise<void> {
    const content = someContent();
    const outcome = await this.#send("POST", `/object/${BUCKET}/${name}`, content, { "content-type": "text/x-test" });
    await this.#settle(outcome, { [name]: new Set([digestOf(content)]) });
  }

  /** Uploads by TUS, in one request or two. */
  async #resume(name: string): Promise<void> {
    const content = someContent();
    const half = Math.random() < 0.5 ? content.length : Math.floor(content.length / 2);
    const metadata = { bucketName: BUCKET, objectName: name };
    const common = { "tus-resumable": "1.0.0", "content-type": "application/offset+octet-stream" };
    const begun = await this.#send("POST", "/upload/resumable", content.subarray(0, half), {
      ...common,
      "upload-length": String(content.length),
      "upload-metadata": Object.entries(metadata)
        .map(([key, value]) => `${key} ${Buffer.from(value).toString("base64")}`)
        .join(","),
    });
    const possible = { [name]: new Set([digestOf(content)]) };
    if (half === content.length || !begun || begun.status >= 300) return this.#settle(begun, possible);
    const rest = { ...common, "upload-offset": String(half) };
    const path = new URL(this.#location, "http://localhost").pathname.replace("/storage/v1", "");
    await this.#settle(await this.#send("PATCH", path, content.subarray(half), rest), possible);
  }

  #location = "";

  async #remove(name: string): Promise<void> {
    await this.#settle(await this.#send("DELETE", `/object/${BUCKET}/${name}`), { [name]: new Set([null]) });
  }

  async #transfer(kind: "move" | "copy", from: string, to: string): Promise<void> {
    if (from === to) return;
    const body = { bucketId: BUCKET, sourceKey: from, destinationKey: to };
    const outcome = await this.#send("POST", `/object/${kind}`, Buffer.from(JSON.stringify(body)), {
      "content-type": "application/json",
    });
    const contents = new Set([...this.#possible(from)].filter((content) => content !== null));
    await this.#settle(outcome, { [to]: contents, ...(kind === "move" && { [from]: new Set([null]) }) });
  }

  /** Reads a name and checks its contents. Returns false if the service does not respond. */
  async #read(name: string): Promise<boolean> {
    const outcome = await this.#send("GET", `/object/${BUCKET}/${name}`);
    if (!outcome || outcome.status >= 500) return false;
    const found = outcome.status < 300 ? digestOf(outcome.body) : null;
    const possible = this.#possible(name);
    if (!possible.has(found)) {
      const shown = [...possible].map((each) => each?.slice(0, 8) ?? "nothing").join(" or ");
      this.#state.wrong.push(`${name} has ${found?.slice(0, 8) ?? "nothing"} instead of ${shown}`);
    }
    this.#known.set(name, new Set([found]));
    return true;
  }

  /** Sends a request; null if the connection was lost. */
  async #send(
    method: string,
    path: string,
    body?: Buffer,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const urls = this.#urls();
    const url = urls[Math.floor(Math.random() * urls.length)]!;
    try {
      const response = await fetch(`${url}/storage/v1${path}`, {
        method,
        headers: { ...HEADERS, ...headers },
        signal: AbortSignal.timeout(ATTEMPT_MS),
        ...(body && { body: new Uint8Array(body) }),
      });
      this.#location = response.headers.get("location") ?? "";
      return { status: statusOf(response), body: Buffer.from(await response.arrayBuffer()) };
    } catch {
      // Waits while one service ends and another starts.
      await sleep(20);
      return null;
    }
  }
}

/** Returns the status. Errors of the storage interface have status 400, and only the body distinguishes them. */
function statusOf({ status }: Response): number {
  return status;
}

function someContent(): Buffer {
  const bytes = Math.random() < 0.1 ? LARGE_BYTES : SMALL_BYTES;
  // Some contents are equal, so that files are shared, released and named again.
  return Math.random() < 0.3
    ? Buffer.alloc(1000, String(Math.floor(Math.random() * 5)))
    : randomBytes(1 + Math.floor(Math.random() * bytes));
}

function digestOf(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
