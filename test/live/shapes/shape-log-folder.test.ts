import { mkdtemp, readdir, readlink, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LiveSource } from "../../../live/queries/live-subscriber.ts";
import type { ShapeDefinition } from "../../../live/shapes/shape-definition.ts";
import { type ShapeChange, ShapeLog, type ShapePosition } from "../../../live/shapes/shape-log.ts";
import { ownerOf, readSavedState, ShapeLogFile } from "../../../live/shapes/shape-log-file.ts";
import { ShapeLogFolder } from "../../../live/shapes/shape-log-folder.ts";
import { propertyRuns } from "../../property-runs.ts";
import { makeRandom } from "../queries/random.ts";

const MEBIBYTE = 2 ** 20;
const definition = { identity: "items", keyPlaces: [0] } as unknown as ShapeDefinition;

let folder: string;
let warnings: unknown[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "content-service-shapes-"));
  warnings = [];
});
const opened: ShapeLogFolder[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  await rm(folder, { recursive: true, force: true });
});

function openFolder(maxBytes = 64 * MEBIBYTE): ShapeLogFolder {
  const log = { warn: (...args: unknown[]) => void warnings.push(args) } as never;
  const logs = new ShapeLogFolder({ folder, maxBytes, share: 1, log });
  opened.push(logs);
  return logs;
}

const ownerNamed = (sub: string, claimsText = sub) => {
  const caller = { kind: "known", role: "user", claims: { sub }, claimsText, expiresAt: null } as const;
  return ownerOf(definition, { caller, quotaKey: sub } as unknown as LiveSource);
};
const ANN = ownerNamed("ann");

function openLog(logs: ShapeLogFolder, number = 1) {
  const file = new ShapeLogFile(logs, number, ANN);
  return { file, log: new ShapeLog([0], number, file) };
}

const read = (position: ShapePosition, owner = ANN, number = 1) =>
  readSavedState(openFolder(), number, position, { definition, owner });

const toText = (rows: ReadonlyMap<string, string>) => JSON.stringify([...rows].toSorted());

/** Applies changes like a client, also to rows that it has from elsewhere. */
function apply(rows: Map<string, string>, changes: readonly ShapeChange[]): void {
  for (const { before, after } of changes) {
    if (after === null) rows.delete(before![0]!);
    else if (before === null) rows.set(after[0]!, after[1]!);
    else if (before[1] !== after[1] && rows.has(after[0]!)) rows.set(after[0]!, after[1]!);
  }
}

test.each(Array.from({ length: propertyRuns(30) }, (_, seed) => seed + 1))(
  "a client that continues from a file, and has read subsets since, has the present rows (seed %i)",
  async (seed) => {
    const random = makeRandom(seed);
    const rows = new Map<string, string>();
    const change = () => {
      for (let count = 1 + random(3); count > 0; count--) {
        const id = String(random(8));
        if (random(3) === 0) rows.delete(id);
        else rows.set(id, String(random(3)));
      }
    };
    const { log, file } = openLog(openFolder());
    const clients: { position: ShapePosition; rows: Map<string, string> }[] = [];
    for (let lsn = 1n; lsn < 30n; lsn++) {
      change();
      const asOfSubset = new Map(rows);
      if (random(2) === 0) change();
      log.accept(toText(rows), lsn * 8n, []);
      // The statement of a subset has run between two states of the log.
      if (random(4) === 0) {
        log.reconcile(toText(asOfSubset));
        const client = clients[random(clients.length)];
        for (const id of client ? "0123" : "") {
          const value = asOfSubset.get(id);
          if (value !== undefined) client!.rows.set(id, value);
        }
      }
      clients.push({ position: log.position, rows: new Map(rows) });
    }
    await file.synced();
    for (let count = random(6); count > 0; count--) change();
    const next = openLog(openFolder(), 2).log;
    next.accept(toText(rows), 100n, []);
    for (const client of clients) {
      const saved = await read(client.position);
      const from = next.positionOf(client.position, "of changes") ?? next.continueFrom(saved!, "of changes");
      expect(from).not.toBe(client.position);
      change();
      next.accept(toText(rows), 101n, []);
      const changes = next.changesSince(from)!;
      apply(client.rows, changes);
      expect(toText(client.rows)).toBe(toText(rows));
      const sent = changes.filter(({ after }) => after !== null);
      expect(sent.length).toBeLessThanOrEqual(3 * rows.size + 3);
    }
  },
);

test("only states that the file has are continued, and only by their callers", async () => {
  const { log, file } = openLog(openFolder());
  log.accept('[["1","a"]]', 8n, []);
  const first = log.position;
  log.accept('[["1","b"]]', 16n, []);
  await file.saved();
  expect(await read(log.position)).toMatchObject({ position: log.position, isOwn: true });
  expect(await read(first + 1n)).toBeNull();
  expect(await read(log.position, ANN, 2)).toBeNull();
  expect(await read(log.position, ownerNamed("bob"))).toBeNull();
  const later = ownerNamed("ann", "a later token");
  expect(await read(log.position, later)).toMatchObject({ isOwn: false });
  expect(await read(first, later)).toMatchObject({ isOwn: false });
  file.changeOwner(later, log.position, log.rows);
  await file.saved();
  expect(await read(log.position, later)).toMatchObject({ isOwn: true });
  expect(await read(first)).toMatchObject({ isOwn: true });
});

test("segments replace each other, and the last mebibyte of changes is there", async () => {
  const { log, file } = openLog(openFolder());
  const positions: ShapePosition[] = [];
  for (let lsn = 1; lsn <= 50; lsn++) {
    log.accept(JSON.stringify([["1", String(lsn).padStart(100_000, "x")]]), BigInt(lsn * 8), []);
    positions.push(log.position);
    await file.saved();
  }
  for (const position of positions.slice(-10)) expect(await read(position)).not.toBeNull();
  expect(await read(positions[0]!)).toBeNull();
  expect((await readdir(folder)).length).toBe(2);
  await file.remove();
  expect(await readdir(folder)).toEqual([]);
});

const bytesIn = async () => {
  const sizes = await Promise.all((await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
};

test("the files are within the bound, and the least recently used ones go first", async () => {
  const logs = openFolder(2 * MEBIBYTE);
  const positions = [];
  for (let number = 1; number <= 40; number++) {
    const { log, file } = openLog(logs, number);
    log.accept(JSON.stringify([["1", "x".repeat(100_000)]]), 8n, []);
    await file.saved();
    positions.push(log.position);
    expect(await bytesIn()).toBeLessThanOrEqual(2 * MEBIBYTE);
  }
  expect(await bytesIn()).toBeGreaterThan(MEBIBYTE);
  expect(await read(positions[0]!, ANN, 1)).toBeNull();
  expect(await read(positions[39]!, ANN, 40)).not.toBeNull();
  expect(warnings).toEqual([]);
});

test("what nobody has used for a day is deleted, and not written again", async () => {
  const logs = openFolder();
  const { log, file } = openLog(logs);
  log.accept('[["1","a"]]', 8n, []);
  await file.saved();
  const old = new Date(Date.now() - 26 * 3_600_000);
  for (const name of await readdir(folder)) await utimes(join(folder, name), old, old);
  await logs.clean();
  log.accept('[["1","b"]]', 16n, []);
  await file.saved();
  expect(await readdir(folder)).toEqual([]);
});

test("what another process has deleted while it was open here is not continued", async () => {
  const { log, file } = openLog(openFolder());
  log.accept('[["1","a"]]', 8n, []);
  await file.saved();
  for (const name of await readdir(folder)) await openFolder().remove(name);
  log.accept('[["1","b"]]', 16n, []);
  await file.saved();
  log.accept('[["1","c"]]', 24n, []);
  await file.saved();
  expect(await readdir(folder)).toEqual([]);
  expect(await openFiles()).toEqual([]);
});

/** Returns the open files of this process in the folder. */
async function openFiles(): Promise<string[]> {
  const links = (await readdir("/proc/self/fd")).map((each) => readlink(join("/proc/self/fd", each)).catch(() => ""));
  return (await Promise.all(links)).filter((path) => path.startsWith(folder));
}

test.runIf(process.platform === "linux")("files are written after the end too, and none stays open", async () => {
  const logs = openFolder();
  const written = Array.from({ length: 600 }, (_, number) => openLog(logs, number));
  for (const lsn of [1, 2, 3]) {
    for (const { log } of written) log.accept(`[["1","${lsn}"]]`, BigInt(lsn * 8), []);
    if (lsn === 2) await logs.close();
    else await Promise.all(written.map(({ file }) => file.saved()));
  }
  for (const [number, { log }] of written.entries()) expect(await read(log.position, ANN, number)).not.toBeNull();
  expect(await openFiles()).toEqual([]);
  expect(warnings).toEqual([]);
});

test("a folder that cannot be written is reported once, and nothing is kept", async () => {
  await rm(folder, { recursive: true });
  await writeFile(folder, "");
  const logs = openFolder();
  for (const number of [1, 2]) {
    const { log, file } = openLog(logs, number);
    log.accept('[["1","a"]]', 8n, []);
    await file.synced();
  }
  expect(warnings.length).toBe(1);
});
