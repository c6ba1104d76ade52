import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { SECRET } from "../rest-gateway/table/differential/answer.ts";

type Place = { readonly url: string; readonly ownerUrl: string };

/** The service in a process of its own, which can be killed. */
export class Gateway {
  readonly url: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  /** Resolves when it answers. */
  static async start({ url, ownerUrl }: Place, settings: Readonly<Record<string, string>> = {}): Promise<Gateway> {
    const child = spawn(process.execPath, ["server.ts"], {
      env: {
        PATH: process.env.PATH,
        PORT: "0",
        LOG_LEVEL: "silent",
        DATABASE_URL: url,
        OWNER_DATABASE_URL: ownerUrl,
        JWT_SECRET: SECRET,
        ...settings,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let complaint = "";
    child.stderr.on("data", (chunk) => (complaint = (complaint + chunk).slice(-2_000)));
    let printed = "";
    for await (const chunk of child.stdout) {
      printed += chunk;
      if (printed.includes("ready in")) break;
    }
    const address = /address\s+(\S+)/.exec(printed)?.[1];
    if (!address) throw new Error(`The gateway ended before it was ready:\n${complaint}`);
    return new Gateway(child, address);
  }

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#ended = once(child, "exit");
    this.pid = child.pid!;
    this.url = url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }
}
