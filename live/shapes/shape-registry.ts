import { randomUUID } from "node:crypto";
import type { LiveQueries } from "../queries/live-queries.ts";
import type { LiveSource } from "../queries/live-subscriber.ts";
import { OpenOfCallers, tooManyOpen } from "../queries/open-of-callers.ts";
import { LiveShape } from "./live-shape.ts";
import type { ShapeDefinition } from "./shape-definition.ts";
import { type ContinuingClient, logNumberOf, type ShapePosition } from "./shape-log.ts";
import { ownerOf, readSavedState } from "./shape-log-file.ts";
import { openShapeLogs, type ShapeLogFolder } from "./shape-log-folder.ts";

const SHAPE_LIMITS = {
  ofCaller: 100,
  waitingOfCaller: 200,
  allBytes: 256 * 2 ** 20,
  /** The bytes of a shape without rows: its maps, and the request that opened it. */
  bytesOfShape: 16 * 2 ** 10,
  keptMs: 24 * 3_600_000,
} as const;

/** The memory per byte of a log: the rows are in memory as text, and once more as values. */
const BYTES_OF_LOG = 3;

type ShapeStatistics = {
  readonly shapes: number;
  readonly bytes: number;
  /** Requests that wait for changes. */
  readonly waiting: number;
};

export function openShapes(live: LiveQueries, ...options: Parameters<typeof openShapeLogs>): ShapeRegistry {
  return new ShapeRegistry(live, openShapeLogs(...options));
}

/** A shape, and the offset of its log from which the client continues. */
type ContinuedShape = { readonly shape: LiveShape; readonly offset: ShapePosition };

/** The request of a client that continues. */
type ContinuedRequest = Pick<LiveShape, "definition" | "source"> & { readonly client: ContinuingClient };

/** The shapes of this process, by their callers and by the numbers of their logs. */
export class ShapeRegistry {
  readonly #live: LiveQueries;
  readonly #folder: ShapeLogFolder | null;
  /** The shapes by caller and definition, the least recently used one first. */
  readonly #byKey = new Map<string, LiveShape>();
  readonly #byNumber = new Map<number, LiveShape>();
  readonly #ofCaller = new Map<string, Set<LiveShape>>();
  readonly #waiting = new OpenOfCallers();
  /** The bytes of all shapes. */
  #bytes = 0;

  /** If there is no folder, logs end with the process. */
  constructor(live: LiveQueries, folder: ShapeLogFolder | null) {
    this.#live = live;
    this.#folder = folder;
  }

  async close(): Promise<void> {
    await this.#folder?.close();
  }

  statistics(): ShapeStatistics {
    return { shapes: this.#byKey.size, bytes: this.#bytes, waiting: this.#waiting.size };
  }

  /** The caller's shape, which is made if there is none. */
  async open(definition: ShapeDefinition, source: LiveSource): Promise<LiveShape> {
    const shape = this.#byKey.get(keyOf(definition, source)) ?? this.#make(definition, source);
    this.#touch(shape);
    shape.enter();
    try {
      await shape.attach();
    } catch (error) {
      shape.leave();
      if (shape.log.position === 0n && !shape.isInUse) this.#drop(shape);
      throw error;
    }
    if (shape.isOf(source)) return shape;
    shape.leave();
    return this.open(definition, source);
  }

  /** The shape that the client continues from this offset; null if it has to begin anew. */
  async find(offset: ShapePosition, { definition, source, client }: ContinuedRequest): Promise<ContinuedShape | null> {
    const number = logNumberOf(offset);
    const shape = this.#byNumber.get(number);
    if (!shape?.log.has(offset) || !(shape.isOf(source) || this.#mayHandOver(shape, offset, source))) {
      const continued = await this.#continueSaved(number, offset, { definition, source, client });
      if (continued) return continued;
    }
    if (!shape || !this.#has(shape) || shape.definition.identity !== definition.identity) return null;
    const isOwn = shape.isOf(source);
    if (!isOwn && !this.#mayHandOver(shape, offset, source)) return null;
    this.#touch(shape);
    shape.enter();
    try {
      await (isOwn ? shape.attach() : this.#handOver(shape, source));
      return { shape, offset };
    } catch (error) {
      shape.leave();
      throw error;
    }
  }

  /** Continues from a state that only files have: the log is another process's, or from before a restart, or was left out of memory. */
  async #continueSaved(
    number: number,
    offset: ShapePosition,
    { definition, source, client }: ContinuedRequest,
  ): Promise<ContinuedShape | null> {
    if (!this.#folder) return null;
    const shape = await this.open(definition, source);
    const { log } = shape;
    const owner = ownerOf(definition, source);
    // The file is read last, so that it is in memory for a moment only.
    const continued = log.positionOf(offset, client);
    const saved = continued === null && (await readSavedState(this.#folder, number, offset, { definition, owner }));
    const position = continued ?? log.positionOf(offset, client) ?? (saved ? log.continueFrom(saved, client) : null);
    if (position !== null && shape.isOf(source)) return { shape, offset: position };
    shape.leave();
    return null;
  }

  /** Counts a request that waits for changes. Returns the function that ends it; throws if the caller has too many. */
  beginWaiting(quotaKey: string): () => void {
    const { waitingOfCaller: most } = SHAPE_LIMITS;
    if (this.#waiting.of(quotaKey) >= most)
      throw tooManyOpen(`${most} requests of the caller wait for changes of shapes.`);
    this.#waiting.add(quotaKey);
    return () => this.#waiting.remove(quotaKey);
  }

  /** A handle of the caller's shape, other than the expired one of the client. */
  handleOf(shape: LiveShape, expired: string | null): string {
    // Two are enough, so nobody can take the handles of others away.
    const known = shape.handles.findLast((handle) => handle !== expired);
    if (known !== undefined) return known;
    const handle = randomUUID();
    shape.handles.push(handle);
    return handle;
  }

  /** The handle for a client that has to begin anew. */
  nextHandle(definition: ShapeDefinition, source: LiveSource, expired: string | null): string {
    const shape = this.#byKey.get(keyOf(definition, source));
    return shape ? this.handleOf(shape, expired) : randomUUID();
  }

  #make(definition: ShapeDefinition, source: LiveSource): LiveShape {
    this.#makeRoom(source.quotaKey);
    const onFailed = (failed: LiveShape) => this.#drop(failed);
    const onGrown = (grown: LiveShape, bytes: number) => {
      if (this.#has(grown)) this.#bytes += BYTES_OF_LOG * bytes;
    };
    const shape = new LiveShape({ definition, live: this.#live, source, folder: this.#folder, onFailed, onGrown });
    this.#byNumber.set(shape.log.number, shape);
    this.#bytes += bytesOf(shape);
    return shape;
  }

  #touch(shape: LiveShape): void {
    const { definition, source } = shape;
    const key = keyOf(definition, source);
    const ofCaller = this.#ofCaller.get(source.quotaKey) ?? new Set();
    this.#ofCaller.set(source.quotaKey, ofCaller);
    ofCaller.delete(shape);
    ofCaller.add(shape);
    this.#byKey.delete(key);
    this.#byKey.set(key, shape);
  }

  /** True for a later token of the same account, if the client needs no changes from before the handover. */
  #mayHandOver({ source, log }: LiveShape, offset: ShapePosition, next: LiveSource): boolean {
    const [from, to] = [source.caller, next.caller];
    const isSameAccount = typeof to.claims.sub === "string" && to.claims.sub === from.claims.sub;
    return isSameAccount && to.role === from.role && source.quotaKey === next.quotaKey && offset === log.position;
  }

  async #handOver(shape: LiveShape, source: LiveSource): Promise<void> {
    this.#byKey.delete(keyOf(shape.definition, shape.source));
    const other = this.#byKey.get(keyOf(shape.definition, source));
    if (other) this.#drop(other);
    try {
      await shape.replaceSource(source);
      this.#touch(shape);
    } catch (error) {
      this.#drop(shape);
      throw error;
    }
  }

  #makeRoom(quotaKey: string): void {
    const ofCaller = this.#ofCaller.get(quotaKey);
    if (ofCaller && ofCaller.size >= SHAPE_LIMITS.ofCaller) this.#dropFirst(ofCaller, "with its file");
    const oldest = Date.now() - SHAPE_LIMITS.keptMs;
    for (const shape of this.#byKey.values()) {
      if (shape.lastUsedAt >= oldest) break;
      if (!shape.isInUse) this.#drop(shape);
    }
    while (this.#bytes > SHAPE_LIMITS.allBytes) this.#dropFirst(this.#byKey.values());
  }

  #has(shape: LiveShape): boolean {
    return this.#byNumber.get(shape.log.number) === shape;
  }

  #dropFirst(shapes: Iterable<LiveShape>, file: "with its file" | "without" = "without"): void {
    for (const shape of shapes) {
      if (shape.isInUse) continue;
      this.#drop(shape);
      if (file === "with its file") void shape.file?.remove();
      return;
    }
    throw tooManyOpen("Too many shapes are in use.");
  }

  #drop(shape: LiveShape): void {
    shape.close();
    const { definition, source } = shape;
    const key = keyOf(definition, source);
    if (this.#byKey.get(key) === shape) this.#byKey.delete(key);
    if (this.#has(shape)) {
      this.#byNumber.delete(shape.log.number);
      this.#bytes -= bytesOf(shape);
    }
    const ofCaller = this.#ofCaller.get(source.quotaKey);
    ofCaller?.delete(shape);
    if (ofCaller?.size === 0) this.#ofCaller.delete(source.quotaKey);
  }
}

function bytesOf({ bytes, definition }: LiveShape): number {
  return SHAPE_LIMITS.bytesOfShape + BYTES_OF_LOG * (bytes + definition.identity.length);
}

function keyOf({ identity }: ShapeDefinition, { caller }: LiveSource): string {
  return JSON.stringify([identity, caller.role, caller.claimsText]);
}
