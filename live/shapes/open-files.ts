import { type FileHandle, open } from "node:fs/promises";

const MODE = 0o600;

/** Files that stay open after their use, so that the next use saves opening them. Of many, the least recently used ones are closed. */
export class OpenFiles {
  readonly #most: number;
  /** By their paths, the least recently used one first. */
  readonly #idle = new Map<string, FileHandle>();
  #inUse = 0;
  #isClosed = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Opens the file with these flags unless it is open. It stays open if the work succeeds. */
  async use(path: string, flags: number, work: (file: FileHandle) => Promise<void>): Promise<void> {
    const idle = this.#take(path);
    this.#inUse++;
    this.#closeOldest();
    let file = idle;
    try {
      file ??= await open(path, flags, MODE);
      await work(file);
      if (!this.#isClosed && !this.#idle.has(path)) {
        this.#idle.set(path, file);
        file = null;
      }
    } finally {
      this.#inUse--;
      this.#closeOldest();
      await file?.close();
    }
  }

  /** Resolves when the file is closed, unless somebody uses it. */
  async close(path: string): Promise<void> {
    await this.#take(path)?.close();
  }

  /** From now on, files are closed after each use. */
  async closeAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#idle.keys()].map((path) => this.close(path)));
  }

  #take(path: string): FileHandle | null {
    const file = this.#idle.get(path) ?? null;
    this.#idle.delete(path);
    return file;
  }

  #closeOldest(): void {
    for (const path of this.#idle.keys()) {
      if (this.#idle.size + this.#inUse <= this.#most) return;
      // Whoever wrote to it last has been told that all is written.
      void this.close(path).catch(() => {});
    }
  }
}
