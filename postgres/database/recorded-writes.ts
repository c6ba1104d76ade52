import { DatabaseError } from "pg";
import type { Lsn, ReadYourWrites } from "./lsn.ts";
import type { Replicas } from "./replicas.ts";

/** Called after a commit, before its result is returned; resolves with its position, if that is known. */
export type WriteListener = () => Promise<Lsn | null>;

/** Records the positions of writes in the WAL, so that later reads see them, on replicas and in caches too. */
export class RecordedWrites {
  readonly #replicas: Replicas | null;
  listener: WriteListener | null = null;

  constructor(replicas: Replicas | null) {
    this.#replicas = replicas;
  }

  async record<Result>(of: ReadYourWrites | undefined, work: Promise<Result>): Promise<Result> {
    if (!this.listener && !(this.#replicas && of)) return work;
    try {
      const result = await work;
      const [position] = await Promise.all([this.listener?.() ?? null, of && this.#replicas?.recordWrite(of)]);
      if (position !== null && !this.#replicas) of?.onWrite(position);
      return result;
    } catch (error) {
      // If the connection was lost, the write may have been committed; if Postgres rejected it, it was not.
      if (!(error instanceof DatabaseError)) {
        if (of) this.#replicas?.recordPossibleWrite(of);
        await this.listener?.();
      }
      throw error;
    }
  }
}
