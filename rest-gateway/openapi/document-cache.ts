import type { WrittenDocument } from "./write.ts";

type Entry = { readonly catalogVersion: number; readonly document: Promise<WrittenDocument>; bytes: number };

const MOST_BYTES = 64 * 1024 * 1024;
/** Each costs its key beside its bytes, and a request can name any selection of tables. */
const MOST_ENTRIES = 1_000;

/** Documents that were made, compressed. Those of an older catalogue go when a newer one is met. */
export class DocumentCache {
  readonly #entries = new Map<string, Entry>();
  readonly #mostBytes: number;

  constructor({ mostBytes = MOST_BYTES }: { mostBytes?: number } = {}) {
    this.#mostBytes = mostBytes;
  }

  /** Who asks while a document is being made waits for the same one. */
  get(key: string, catalogVersion: number, make: () => Promise<WrittenDocument>): Promise<WrittenDocument> {
    const versioned = `${catalogVersion} ${key}`;
    const known = this.#entries.get(versioned);
    if (known) {
      // Last in the map is most recently used.
      this.#entries.delete(versioned);
      this.#entries.set(versioned, known);
      return known.document;
    }
    this.#forgetBefore(catalogVersion);
    const entry: Entry = { catalogVersion, document: make(), bytes: 0 };
    this.#entries.set(versioned, entry);
    entry.document.then(
      ({ gzip }) => {
        entry.bytes = gzip.length;
        this.#makeRoom();
      },
      () => this.#entries.delete(versioned),
    );
    return entry.document;
  }

  get size(): number {
    return this.#entries.size;
  }

  #forgetBefore(catalogVersion: number): void {
    for (const [key, entry] of this.#entries) if (entry.catalogVersion < catalogVersion) this.#entries.delete(key);
  }

  /** The newest stays even when it is larger than the bound: making it anew for each request would cost more. */
  #makeRoom(): void {
    let bytes = 0;
    for (const entry of this.#entries.values()) bytes += entry.bytes;
    for (const [key, entry] of this.#entries) {
      const isFull = bytes > this.#mostBytes || this.#entries.size > MOST_ENTRIES;
      if (!isFull || this.#entries.size === 1) return;
      this.#entries.delete(key);
      bytes -= entry.bytes;
    }
  }
}
