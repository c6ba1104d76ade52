import { type AsOwner, formatLsn } from "#postgres/database";
import type { Logger } from "#runtime/log";
import type { DependencyCache } from "../dependencies/dependency-cache.ts";
import { readFingerprint } from "../dependencies/read-query-dependencies.ts";
import type { ChangeMarks } from "./change-marks.ts";
import type { CommitVisibility } from "./commit-visibility.ts";
import { LIVE_LIMITS, resultTooLarge } from "./live-limits.ts";
import type { LiveQueryResult, LiveSubscriber } from "./live-subscriber.ts";
import { mayRunAgain, type RerunQueue } from "./rerun-queue.ts";
import { contentsOf } from "./result-contents.ts";
import type { ResultActions, RunOutcome } from "./shared-result.ts";
import type { SharedResults } from "./shared-results.ts";

type ActionsOptions = {
  readonly asOwner: AsOwner;
  readonly marks: Pick<ChangeMarks, "changeContents" | "mark" | "remove">;
  readonly results: Pick<SharedResults, "recount" | "remove">;
  readonly reruns: Pick<RerunQueue, "run">;
  readonly visibility: Pick<CommitVisibility, "awaitVisible">;
  readonly dependencies: Pick<DependencyCache, "forgetStatements">;
  readonly log: Pick<Logger, "warn">;
  /** Resolves when a query that has failed may run again. */
  pause(): Promise<void>;
  onRun(): void;
  onForgotten(): void;
  /** Opens the query of the subscriber again. `xids`: commits that the subscriber then learns of. */
  reopen(subscriber: LiveSubscriber, xids: readonly number[]): Promise<void>;
};

/** The actions of `result-states.ts`. */
export function makeResultActions(options: ActionsOptions): ResultActions<LiveQueryResult> {
  const { marks, results, reruns, visibility, dependencies, log } = options;
  const takeTurn = (result: LiveQueryResult) => {
    const [reader] = result.readers;
    if (reader) void reruns.run(reader.source.quotaKey, async () => result.handle("turn"));
  };
  return {
    takeTurn,
    takeTurnLater: (result) => void options.pause().then(() => takeTurn(result)),
    awaitVisibility: async (result) => {
      marks.changeContents(result, null, () => result.forgetContents());
      await visibility.awaitVisible();
      await result.handle("visible");
    },
    run: async (result) => {
      options.onRun();
      const [reader] = result.readers;
      const run = result.beginRun();
      const outcome = await runQuery(result, reader!, options);
      if (!result.isInProgress(run)) return;
      if (!("error" in outcome)) return result.handle(outcome.run ? "finished" : "separated", outcome);
      const isRepeated = reader!.isClosed || mayRunAgain(outcome.error, result.countFailure());
      return result.handle(isRepeated ? "failed" : "refused", outcome);
    },
    accept: (result, { run }) => {
      marks.changeContents(result, run!.contents, () => result.acceptRun(run!));
      results.recount(result);
    },
    putBack: (result) => result.putBackRun(),
    release: (result) => result.release(),
    mark: (result) => marks.mark(result),
    keep: (result) => result.expireAfter(LIVE_LIMITS.keptMs),
    reuse: (result) => result.stopExpiry(),
    forget: (result) => {
      result.stopExpiry();
      result.release();
      results.remove(result);
      marks.remove(result);
      options.onForgotten();
    },
    regroup: (result) => {
      dependencies.forgetStatements(result.statements);
      const xids = result.takeAllXids();
      for (const reader of result.takeReaders()) reader.changeResult(() => options.reopen(reader, xids));
    },
    fail: (result, { error }) => {
      log.warn({ err: error, position: formatLsn(result.markedAt) }, "a live query has ended");
      for (const reader of result.takeReaders()) reader.fail(error);
    },
  };
}

/** Empty if the readers may belong to several audiences now. */
async function runQuery(
  result: LiveQueryResult,
  { source }: LiveSubscriber,
  { asOwner }: ActionsOptions,
): Promise<RunOutcome> {
  try {
    const read = await source.run();
    // Rows decide which statements follow; others may have another audience.
    const isOther = read.statements.some(({ statement }) => !result.statements.has(statement.text));
    if (isOther || !(await isSameAudience(result, asOwner))) return {};
    if (read.text.length > LIVE_LIMITS.resultBytes) throw resultTooLarge(LIVE_LIMITS.resultBytes);
    return { run: { ...read, contents: contentsOf(read, result.dependencies, result.lastContents) } };
  } catch (error) {
    return { error };
  }
}

/** True if the callers still belong to one audience: definitions that changed with or before the run may separate them. */
async function isSameAudience({ readers, dependencies }: LiveQueryResult, asOwner: AsOwner): Promise<boolean> {
  const claims = new Set([...readers].map(({ source }) => source.caller.claimsText));
  if (claims.size <= 1) return true;
  return (await readFingerprint(asOwner, dependencies.deciding)) === dependencies.fingerprint;
}
