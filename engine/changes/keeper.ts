import type { Logger } from "../log.ts";
import { withClient } from "../with-client.ts";
import { formatLsn, type Lsn } from "./lsn.ts";
import { advanceKeeper, dropKeeper, type Slot } from "./slots.ts";

export type KeeperOptions = {
  readonly url: string;
  /** How far behind the keeper stays in time. */
  readonly keptMs: number;
  readonly log: Pick<Logger, "warn">;
};

/** And in size: this much is read again within seconds. */
const KEPT_BYTES = 256 * 2 ** 20;
/** The keeper moves in so many steps. */
const STEPS = 8;

type Sample = { readonly at: number; readonly next: Lsn };

/** Moves the slot that keeps the log of this database along behind what is read, and costs nothing where nothing is written. */
export class Keeper {
  readonly #options: KeeperOptions;
  #samples: Sample[] = [];
  #asking: Promise<unknown> | null = null;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Called for each transaction. */
  passed(next: Lsn, { isKept, mostBytes }: Slot): void {
    if (!isKept) return;
    const { keptMs } = this.#options;
    const keptBytes = mostBytes === null ? KEPT_BYTES : Math.min(KEPT_BYTES, mostBytes / 2);
    const at = performance.now();
    const isBehind = (sample: Sample, part: number) =>
      at - sample.at >= keptMs * part || Number(next - sample.next) >= keptBytes * part;
    const last = this.#samples.at(-1);
    if (last && !isBehind(last, 1 / STEPS)) return;
    this.#samples.push({ at, next });
    const index = this.#samples.findLastIndex((sample) => isBehind(sample, 1));
    if (index < 0 || this.#asking) return;
    const { next: to } = this.#samples[index]!;
    this.#samples = this.#samples.slice(index + 1);
    this.#asking = this.#ask(to).finally(() => {
      this.#asking = null;
    });
  }

  /** Nobody follows here. Resolves with whether nothing is kept any more: others may still read, and what we read ends in a moment. */
  async retire(): Promise<boolean> {
    this.#samples = [];
    await this.#asking;
    const asked = withClient(this.#options.url, dropKeeper).catch((error) => {
      this.#options.log.warn({ err: error }, "the slot that keeps changes for those who resume was not dropped");
      return false;
    });
    this.#asking = asked;
    return asked.finally(() => {
      this.#asking = null;
    });
  }

  async close(): Promise<void> {
    await this.#asking;
  }

  async #ask(to: Lsn): Promise<void> {
    await withClient(this.#options.url, (client) => advanceKeeper(client, to)).catch((error) => {
      this.#options.log.warn(
        { err: error, to: formatLsn(to) },
        "the slot that keeps changes for those who resume stays behind",
      );
    });
  }
}
