import type { QueryParameter, RowBatch, TableRow } from "../../api/rest-query.ts";
import type { GridRows } from "../../components/grid-rows.ts";
import { filterAt, filtersAfter, isAddressable, type OrderTerm, type RowPosition, reverseOrder } from "./keyset.ts";

export type RowRequest = {
  readonly order: readonly OrderTerm[];
  readonly filters: readonly QueryParameter[];
  readonly offset: number;
  readonly limit: number;
};

type RowWindowOptions = {
  readonly order: readonly OrderTerm[];
  /** True if the order distinguishes all rows. If not, each page is read by offset. */
  readonly isTotalOrder: boolean;
  readonly rowCount: number;
  readonly read: (request: RowRequest, signal: AbortSignal) => Promise<RowBatch>;
  /** Counts the rows exactly, if a page shows that the known number is wrong. */
  readonly count: (signal: AbortSignal, filters?: readonly QueryParameter[]) => Promise<number>;
  readonly pageSize?: number;
  readonly maxPages?: number;
  readonly maxSize?: number;
};

type Page = RowBatch & { lastUse: number };
/** The rows of a page, in the order of the grid, and the next row in the direction of reading. */
type Batch = RowBatch & { readonly isForward: boolean; readonly next: TableRow | undefined };

const PAGES_AHEAD = 6;
const PAGES_BEHIND = 2;
/** The rest of a dragged scrollbar after which its page is read. */
const REST_MILLISECONDS = 30;

/**
 * A bounded number of pages of a table's rows. A page beside one in memory is read by keyset, which an index makes equally fast
 * everywhere; a page far from all others is read by offset, counted from the nearer end.
 */
export class RowWindows implements GridRows<TableRow> {
  readonly #options: RowWindowOptions;
  readonly #pageSize: number;
  readonly #pages = new Map<number, Page>();
  readonly #reading = new Map<number, AbortController>();
  readonly #failed = new Set<number>();
  readonly #listeners = new Set<() => void>();
  readonly #counting = new AbortController();
  #rowCount: number;
  #isExact = false;
  #outdated: ReadonlyMap<number, Page> = new Map();
  #error: unknown = null;
  #seen: readonly [first: number, last: number] = [0, 0];
  #forward = true;
  #uses = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: RowWindowOptions) {
    this.#options = options;
    this.#pageSize = options.pageSize ?? 100;
    this.#rowCount = options.rowCount;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  get isExact(): boolean {
    return this.#isExact;
  }

  /** The reason why rows are missing, until `retry` is called. */
  get error(): unknown {
    return this.#error;
  }

  get pagesInMemory(): number {
    return this.#pages.size;
  }

  rowAt(index: number): TableRow | undefined {
    const number = this.#pageOf(index);
    const page = this.#pages.get(number) ?? this.#outdated.get(number);
    return page?.rows[index - number * this.#pageSize];
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  show(first: number, last: number): void {
    if (first !== this.#seen[0]) this.#forward = first > this.#seen[0];
    this.#seen = [first, last];
    this.#readWanted();
  }

  /** Reads everything again. The visible rows stay until the new ones arrive. */
  refresh(): void {
    this.#outdated = new Map([...this.#outdated, ...this.#pages]);
    this.#dropPages(() => true);
    this.retry();
  }

  retry(): void {
    this.#failed.clear();
    this.#error = null;
    this.#readWanted();
    this.#notify();
  }

  /** Replaces a row by its changed version. */
  replaceRow(index: number, row: TableRow): void {
    const number = this.#pageOf(index);
    const page = this.#pages.get(number);
    if (page?.rows[index - number * this.#pageSize] === undefined) return;
    const rows = page.rows.with(index - number * this.#pageSize, row);
    this.#pages.set(number, { ...page, rows });
    this.#notify();
  }

  /** Returns the index of a row in memory; -1 if no page contains it. */
  indexOf(isWanted: (row: TableRow) => boolean): number {
    for (const [number, { rows }] of this.#pages) {
      const place = rows.findIndex(isWanted);
      if (place >= 0) return number * this.#pageSize + place;
    }
    return -1;
  }

  /** Returns the index of a row in the order; null if the filters hide it, or if no order can find it. */
  async findPlace(row: TableRow): Promise<number | null> {
    const { order, isTotalOrder, count } = this.#options;
    const position = this.#positionOf(row);
    if (!isTotalOrder || !isAddressable(position)) return null;
    const { signal } = this.#counting;
    if ((await count(signal, [filterAt(order, position)])) === 0) return null;
    const counts = filtersAfter(reverseOrder(order), position).map((filters) => count(signal, filters));
    return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
  }

  /** Counts the rows; a failure leaves the estimate. */
  async countRows(): Promise<void> {
    const count = await this.#options.count(this.#counting.signal).catch(() => null);
    if (count === null || this.#counting.signal.aborted) return;
    this.#setCount(count, true);
    this.#readWanted();
    this.#notify();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#counting.abort();
    for (const controller of this.#reading.values()) controller.abort();
    this.#listeners.clear();
  }

  #pageOf(index: number): number {
    return Math.floor(index / this.#pageSize);
  }

  /** Returns the visible pages, then the next ones in the direction of scrolling, then those behind. */
  #wantedPages(): { seen: number[]; all: number[] } {
    const last = this.#pageOf(Math.max(this.#rowCount - 1, 0));
    const [from, to] = this.#seen.map((index) => Math.min(this.#pageOf(index), last)) as [number, number];
    const seen = rangeOf(from, to);
    const after = rangeOf(to + 1, to + (this.#forward ? PAGES_AHEAD : PAGES_BEHIND));
    const before = rangeOf(from - (this.#forward ? PAGES_BEHIND : PAGES_AHEAD), from - 1).reverse();
    const near = this.#forward ? [...after, ...before] : [...before, ...after];
    return { seen, all: [...seen, ...near.filter((page) => page >= 0 && page <= last)] };
  }

  #readWanted(): void {
    clearTimeout(this.#timer);
    const { seen, all } = this.#wantedPages();
    for (const [page, controller] of this.#reading) {
      if (all.includes(page)) continue;
      controller.abort();
      this.#reading.delete(page);
    }
    for (const page of all) {
      const known = this.#pages.get(page);
      if (known) known.lastUse = ++this.#uses;
      else if (!this.#reading.has(page) && !this.#failed.has(page)) this.#readPage(page, seen.includes(page));
    }
    this.#evict(all);
  }

  #readPage(page: number, isSeen: boolean): void {
    const request = this.#neighbourRequest(page);
    if (request) return void this.#run(page, request);
    if (page === 0) return void this.#run(page, (signal) => this.#readAtOffset(0, signal));
    const awaitsNeighbour = this.#reading.has(page - 1) || this.#reading.has(page + 1);
    if (this.#options.isTotalOrder && (awaitsNeighbour || !isSeen)) return;
    if (this.#reading.size >= 4) return;
    const isJump = this.#options.isTotalOrder && this.#pages.size > 0;
    if (!isJump) return void this.#run(page, (signal) => this.#readAtOffset(page, signal));
    this.#timer = setTimeout(() => {
      if (!this.#reading.has(page)) void this.#run(page, (signal) => this.#readAtOffset(page, signal));
    }, REST_MILLISECONDS);
  }

  #neighbourRequest(page: number): ((signal: AbortSignal) => Promise<Batch>) | null {
    if (!this.#options.isTotalOrder || page === 0) return null;
    const before = this.#pages.get(page - 1)?.rows;
    const last = before?.length === this.#pageSize ? this.#positionOf(before.at(-1)!) : null;
    if (last && isAddressable(last)) return (signal) => this.#readNear(last, true, signal);
    const first = this.#pages.get(page + 1)?.rows[0];
    const following = first && this.#positionOf(first);
    if (!following || !isAddressable(following)) return null;
    return (signal) => this.#readNear(following, false, signal);
  }

  async #readNear(position: RowPosition, isForward: boolean, signal: AbortSignal): Promise<Batch> {
    const order = isForward ? this.#options.order : reverseOrder(this.#options.order);
    const rows: TableRow[] = [];
    let size = 0;
    for (const filters of filtersAfter(order, position)) {
      const limit = this.#pageSize + 1 - rows.length;
      if (limit === 0) break;
      const batch = await this.#options.read({ order, filters, offset: 0, limit }, signal);
      rows.push(...batch.rows);
      size += batch.size;
    }
    return toBatch({ rows, size }, this.#pageSize, isForward);
  }

  async #readAtOffset(page: number, signal: AbortSignal): Promise<Batch> {
    const { order, read, isTotalOrder } = this.#options;
    const start = page * this.#pageSize;
    const end = Math.min(start + this.#pageSize, this.#rowCount);
    const isForward = !(isTotalOrder && this.#isExact && end > start && start > this.#rowCount / 2);
    const [offset, length] = isForward ? [start, this.#pageSize] : [this.#rowCount - end, end - start];
    const direction = isForward ? order : reverseOrder(order);
    const batch = await read({ order: direction, filters: [], offset, limit: length + 1 }, signal);
    return toBatch(batch, length, isForward);
  }

  async #run(page: number, readBatch: (signal: AbortSignal) => Promise<Batch>): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#reading.set(page, controller);
    try {
      const batch = await readBatch(signal);
      if (signal.aborted) return;
      this.#reading.delete(page);
      this.#keep(page, batch);
    } catch (error) {
      if (signal.aborted) return;
      this.#reading.delete(page);
      this.#failed.add(page);
      this.#error = error;
    }
    this.#readWanted();
    this.#notify();
  }

  #keep(page: number, batch: Batch): void {
    const { rows, size, isForward } = batch;
    const end = Math.min((page + 1) * this.#pageSize, this.#rowCount);
    if (!isForward && rows.length < end - page * this.#pageSize) {
      // Other callers have deleted rows meanwhile, so there are fewer than the page's number requires.
      this.#dropPages(() => true);
      void this.countRows();
      return;
    }
    this.#pages.set(page, { rows, size, lastUse: ++this.#uses });
    this.#dropDisplaced(page, batch);
    if (isForward && this.#pages.has(page)) this.#correctCount(page, batch);
    const { seen } = this.#wantedPages();
    if (seen.every((each) => this.#pages.has(each))) this.#outdated = new Map();
  }

  /** Drops displaced rows after inserts and deletes: of two pages that do not adjoin, the one farther from the visible rows is read again. */
  #dropDisplaced(page: number, { isForward, next }: Batch): void {
    if (!this.#options.isTotalOrder) return;
    const lower = isForward ? page : page - 1;
    const neighbour = isForward ? this.#pages.get(page + 1)?.rows[0] : this.#pages.get(page - 1)?.rows.at(-1);
    if (neighbour === undefined || (next && this.#textOfPosition(next) === this.#textOfPosition(neighbour))) return;
    const seen = this.#pageOf(this.#seen[0]);
    // A user who scrolls from one page to the other has seen the first.
    const keepsLower = seen === lower || seen === lower + 1 ? this.#forward : seen < lower;
    this.#dropPages((other) => (keepsLower ? other > lower : other <= lower));
  }

  #correctCount(page: number, { rows, next }: Batch): void {
    const end = page * this.#pageSize + rows.length;
    if (rows.length === 0 && page > 0) {
      this.#setCount(Math.min(this.#rowCount, end), false);
      void this.countRows();
    } else if (next === undefined) this.#setCount(end, true);
    else if (end >= this.#rowCount) this.#setCount(end + 1, false);
  }

  #setCount(count: number, isExact: boolean): void {
    this.#rowCount = count;
    this.#isExact = isExact;
  }

  #dropPages(isDropped: (page: number) => boolean): void {
    for (const page of [...this.#pages.keys()].filter(isDropped)) this.#pages.delete(page);
    for (const [page, controller] of this.#reading) {
      if (!isDropped(page)) continue;
      controller.abort();
      this.#reading.delete(page);
    }
  }

  #evict(wanted: readonly number[]): void {
    const maxPages = this.#options.maxPages ?? 40;
    const maxSize = this.#options.maxSize ?? 32 * 1024 * 1024;
    const oldest = [...this.#pages].sort(([, one], [, other]) => one.lastUse - other.lastUse);
    let size = oldest.reduce((sum, [, page]) => sum + page.size, 0);
    for (const [number, page] of oldest) {
      if (this.#pages.size <= maxPages && size <= maxSize) return;
      if (wanted.includes(number)) continue;
      this.#pages.delete(number);
      size -= page.size;
    }
  }

  #positionOf(row: TableRow): RowPosition {
    return this.#options.order.map(({ column }) => row[column] ?? null);
  }

  #textOfPosition(row: TableRow): string {
    return JSON.stringify(this.#positionOf(row));
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Makes a batch from the rows that were read, one more than wanted. */
function toBatch({ rows, size }: RowBatch, length: number, isForward: boolean): Batch {
  const wanted = rows.slice(0, length);
  return { rows: isForward ? wanted : wanted.reverse(), size, isForward, next: rows[length] };
}

function rangeOf(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
}
