import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { LiveQueryResult } from "../../../live/queries/live-subscriber.ts";
import { type LiveResult, LiveSubscriber } from "../../../live/queries/live-subscriber.ts";
import { makeResultActions } from "../../../live/queries/result-actions.ts";
import { SharedResult } from "../../../live/queries/shared-result.ts";
import { SharedResults } from "../../../live/queries/shared-results.ts";
import { ApiError } from "../../../runtime/errors.ts";
import { propertyRuns } from "../../property-runs.ts";

const caller = { kind: "known", role: "reader", claims: {}, claimsText: "{}", expiresAt: null } as const;
const statement = { statement: { text: "select", values: [] }, context: { role: "reader", settings: [] } };
const other = { ...statement, statement: { text: "select others", values: [] } };

/** A run in progress. The database then had so many commits. */
type PendingRun = { readonly commits: number; end(outcome: "result" | "other audience" | Error): void };

/** A database whose every commit changes the result of the one query, and the queues that the engine waits in. */
class World {
  commits = 0;
  definitions = 0;
  readonly readers: Reader[] = [];
  readonly runs: PendingRun[] = [];
  readonly turns: (() => Promise<unknown>)[] = [];
  readonly waits: (() => void)[] = [];
  readonly pauses: (() => void)[] = [];
  undelivered: number[] = [];
  readonly marked = new Set<LiveQueryResult>();
  readonly results = new SharedResults();
  /** The results that commits affect: those whose dependencies are the present ones. */
  #affected = new Set<LiveQueryResult>();
  readonly actions = makeResultActions({
    asOwner: () => Promise.reject(new Error("not asked")),
    marks: {
      changeContents: (_result, _contents, change) => change(),
      mark: (result) => this.marked.add(result),
      remove: (result) => this.marked.delete(result),
    },
    results: this.results,
    reruns: { run: (_caller, work) => new Promise((resolve) => this.turns.push(() => work().then(resolve))) },
    visibility: { awaitVisible: () => new Promise((resolve) => this.waits.push(resolve)) },
    dependencies: { forgetStatements: () => {} },
    log: { warn: () => {} },
    pause: () => new Promise((resolve) => this.pauses.push(resolve)),
    onRun: () => {},
    onForgotten: () => {},
    reopen: async (subscriber, xids) => {
      await this.attach(subscriber).then(
        () => subscriber.commit(xids),
        (error) => subscriber.fail(error),
      );
    },
  });

  /** The first run of a query, and then its result, which may lack commits that came in the meantime. */
  async attach(subscriber: LiveSubscriber): Promise<void> {
    const [commits, definitions] = [this.commits, this.definitions];
    const { text } = await subscriber.source.run();
    if (subscriber.isClosed) return;
    const existing = this.results.get("query");
    const result = existing ?? this.#make(text);
    if (!existing && commits < this.commits) {
      this.marked.add(result);
      void result.handle("noted");
    }
    subscriber.join(result);
    if (existing && !existing.isCurrent(text)) await existing.refresh();
    if (definitions !== this.definitions) void result.handle("outdated");
  }

  run(): Promise<LiveResult> {
    const { commits } = this;
    return new Promise((resolve, reject) => {
      this.runs.push({
        commits,
        end: (outcome) => {
          if (outcome instanceof Error) return reject(outcome);
          const statements = [outcome === "result" ? statement : other];
          resolve({ text: String(commits), statements, filters: [], shown: [], missing: null });
        },
      });
    });
  }

  deliver(): void {
    const xids = [this.undelivered];
    const affected = this.undelivered.length > 0 ? this.#affected : new Set<LiveQueryResult>();
    for (const { subscriber, delivered } of this.readers)
      if (subscriber.result && affected.has(subscriber.result)) for (const xid of this.undelivered) delivered.add(xid);
    const marked = [...affected.union(this.marked)];
    this.undelivered = [];
    this.marked.clear();
    for (const result of marked) result.deliver({ xids, changes: null, position: BigInt(this.commits) });
  }

  changeDefinitions(): void {
    this.definitions++;
    this.#affected = new Set();
    for (const result of this.results.list()) void result.handle("outdated");
  }

  /** Ends all waits, and all runs with a result, until there are none. */
  async settle(): Promise<void> {
    for (let isBusy = true; isBusy; await nextTurn()) {
      const { runs, turns, waits, pauses } = this;
      isBusy = [runs, turns, waits, pauses, this.undelivered].some((each) => each.length > 0) || this.marked.size > 0;
      this.deliver();
      for (const turn of turns.splice(0)) void turn();
      for (const resume of [...waits.splice(0), ...pauses.splice(0)]) resume();
      for (const run of runs.splice(0)) run.end("result");
    }
  }

  #make(text: string): LiveQueryResult {
    const result: LiveQueryResult = new SharedResult(
      "query",
      {
        dependencies: { relations: [] as const } as unknown as LiveQueryResult["dependencies"],
        filters: [],
        statements: ["select"],
        tableRows: null,
        running: new Set(),
      },
      { text, contents: null, position: BigInt(this.commits), startedAt: performance.now() },
      this.actions,
    );
    this.results.add(result);
    this.#affected.add(result);
    return result;
  }
}

/** A client, and what it may rely on. */
class Reader {
  readonly subscriber: LiveSubscriber;
  /** The commits that its result has to have, and those that it was told of. */
  least: number;
  readonly learned = new Set<number>();
  /** The commits that were delivered to its result. */
  readonly delivered = new Set<number>();
  isFailed = false;
  /** The calls that have not ended. */
  calls = 0;
  /** True if a call has ended before its time. */
  isMisled = false;
  /** False until the query is open. */
  isAttached = false;

  constructor(world: World) {
    this.least = world.commits;
    const source = {
      request: "query",
      caller,
      quotaKey: "",
      isPrivate: false,
      run: () => world.run(),
      onCommits: (xids: readonly number[]) => {
        for (const xid of xids) this.learned.add(xid);
        this.least = Math.max(this.least, ...xids);
      },
    };
    this.subscriber = new LiveSubscriber(source, () => {});
    world.readers.push(this);
    void this.#follow();
    void world.attach(this.subscriber).then(
      () => {
        this.isAttached = true;
      },
      () => this.subscriber.close(),
    );
  }

  get isOpen(): boolean {
    return !this.subscriber.isClosed && !this.isFailed;
  }

  /** Null while it changes to another result, or has not got its first one. */
  get commits(): number | null {
    return this.isAttached && this.subscriber.result ? Number(this.subscriber.result.current.text) : null;
  }

  /** The result has all commits of the time of the call. */
  async refresh(commits: number): Promise<void> {
    this.calls++;
    await this.subscriber.refresh().then(
      (version) => {
        this.isMisled ||= version ? Number(version.text) < commits : !this.subscriber.isClosed;
      },
      () => {},
    );
    this.calls--;
  }

  /** Until it is closed, or its query fails. */
  async #follow(): Promise<void> {
    try {
      while (await this.subscriber.next(60_000));
    } catch {
      this.isFailed = true;
    }
  }
}

/** The naive one runs the query of all readers after each commit. */
type NaiveModel = { commits: number };
type Step = fc.AsyncCommand<NaiveModel, World>;

const LOST = new ApiError("unavailable", "UNAVAILABLE", "Lost.");
const FORBIDDEN = new ApiError("forbidden", "FORBIDDEN", "No.");

function step(
  times: number,
  name: string,
  isPossible: (world: World) => boolean,
  act: (world: World, at: number) => void,
): fc.Arbitrary<Step>[] {
  const made = fc.nat(20).map((at): Step => {
    return {
      check: () => true,
      toString: () => `${name} ${at}`,
      run: async (model, world) => {
        if (isPossible(world)) act(world, at);
        model.commits = world.commits;
        await nextTurn();
        checkAlways(world);
      },
    };
  });
  return Array<fc.Arbitrary<Step>>(times).fill(made);
}

const settle: Step = {
  check: () => true,
  toString: () => "settle",
  run: async (model, world) => {
    await world.settle();
    checkAlways(world);
    expect(world.readers.filter(({ calls }) => calls > 0)).toEqual([]);
    for (const { commits, subscriber, delivered, learned } of openReaders(world)) {
      expect([commits, subscriber.result?.state]).toEqual([model.commits, "current"]);
      expect([...delivered.difference(learned)]).toEqual([]);
    }
  },
};

function pick<Item>(items: readonly Item[], at: number): Item {
  return items[at % items.length]!;
}

/** Removes one of them. */
function takeOne<Item>(items: Item[], at: number): Item {
  return items.splice(at % items.length, 1)[0]!;
}

const openReaders = (world: World) => world.readers.filter(({ isOpen }) => isOpen);
const attachedReaders = (world: World) => openReaders(world).filter(({ isAttached }) => isAttached);
const resultsOf = (world: World) => world.results.list();

/** Each step so many times as often as others. */
const STEPS = [
  ...Array<fc.Arbitrary<Step>>(2).fill(fc.constant(settle)),
  ...step(
    3,
    "commit",
    () => true,
    (world) => void world.undelivered.push(++world.commits),
  ),
  ...step(
    3,
    "deliver",
    () => true,
    (world) => world.deliver(),
  ),
  ...step(
    2,
    "change definitions",
    () => true,
    (world) => world.changeDefinitions(),
  ),
  ...step(
    3,
    "join",
    (world) => openReaders(world).length < 2,
    (world) => void new Reader(world),
  ),
  ...step(
    3,
    "leave",
    (world) => openReaders(world).length > 0,
    (world, at) => pick(openReaders(world), at).subscriber.close(),
  ),
  ...step(
    3,
    "refresh",
    (world) => attachedReaders(world).length > 0,
    (world, at) => void pick(attachedReaders(world), at).refresh(world.commits),
  ),
  ...step(
    1,
    "expire",
    () => true,
    (world) => {
      for (const result of resultsOf(world)) void result.handle("expired");
    },
  ),
  ...step(
    4,
    "turn",
    ({ turns }) => turns.length > 0,
    ({ turns }, at) => void takeOne(turns, at)(),
  ),
  ...step(
    4,
    "become visible",
    ({ waits }) => waits.length > 0,
    ({ waits }, at) => takeOne(waits, at)(),
  ),
  ...step(
    2,
    "end of a pause",
    ({ pauses }) => pauses.length > 0,
    ({ pauses }, at) => takeOne(pauses, at)(),
  ),
  ...step(
    6,
    "result of a run",
    ({ runs }) => runs.length > 0,
    ({ runs }, at) => takeOne(runs, at).end("result"),
  ),
  ...step(
    1,
    "run of another audience",
    ({ runs }) => runs.length > 0,
    ({ runs }, at) => takeOne(runs, at).end("other audience"),
  ),
  ...step(
    2,
    "failure of a run",
    ({ runs }) => runs.length > 0,
    ({ runs }, at) => takeOne(runs, at).end(LOST),
  ),
  ...step(
    1,
    "refusal of a run",
    ({ runs }) => runs.length > 0,
    ({ runs }, at) => takeOne(runs, at).end(FORBIDDEN),
  ),
];

function checkAlways(world: World): void {
  for (const result of resultsOf(world)) {
    const isUnread = result.state === "kept" || result.state === "behind";
    expect([result.state, result.readers.size === 0]).toEqual([result.state, isUnread]);
  }
  for (const { commits, least, isOpen, isMisled } of world.readers) {
    expect(isMisled).toBe(false);
    if (isOpen && commits !== null) expect(commits).toBeGreaterThanOrEqual(least);
  }
}

test("with any order of events each reader ends with the result that a run after each commit gives", async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(STEPS, { maxCommands: 400, size: "max" }), async (steps) => {
      const world = new World();
      const model: NaiveModel = { commits: 0 };
      await fc.asyncModelRun(() => ({ model, real: world }), steps);
      await settle.run(model, world);
      for (const { subscriber } of world.readers) subscriber.close();
    }),
    { numRuns: propertyRuns(1_000) },
  );
});
