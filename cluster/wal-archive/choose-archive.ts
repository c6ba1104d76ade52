import { basename } from "node:path";
import {
  type ArchiveContent,
  type ArchivedSegment,
  type BaseBackup,
  recoverableRange,
  segmentsFrom,
} from "./archive-folder.ts";
import type { RecoveryTarget } from "./recovery-time.ts";

/** The base backup that recovery begins with, and the WAL after it. */
export type RecoveryPlan = {
  readonly archive: ArchiveContent;
  readonly base: BaseBackup;
  readonly segments: readonly ArchivedSegment[];
  /** Null for all WAL. */
  readonly until: Date | null;
};

type ChooseOptions = {
  readonly target: RecoveryTarget;
  /** The name of the archive that the present database writes to; null if there is none. */
  readonly current: string | null;
  readonly now: Date;
};

/** Selects the archive and the base backup for a time. Throws an error whose message names the times that can be restored. */
export function planRecovery(archives: readonly ArchiveContent[], options: ChooseOptions): RecoveryPlan {
  const { target, now } = options;
  const usable = archives.filter(({ bases }) => bases.length > 0);
  if (usable.length === 0) {
    throw new Error(
      archives.length === 0
        ? "There is no WAL archive. Set BACKUP_WAL=true, and BACKUP_DIR to its folder; a backup file is restored without --at."
        : "The WAL archive has no complete base backup yet, so nothing can be restored from it.",
    );
  }
  if (target !== "latest" && target.at > now) {
    throw new Error(`${target.at.toISOString()} is in the future. ${describeRanges(usable)}`);
  }
  const archive = chooseArchive(usable, options);
  const base = archive.bases.findLast(({ completedAt }) => target === "latest" || completedAt <= target.at);
  if (!base) throw new Error(`There is no base backup before ${(target as { at: Date }).at.toISOString()}.`);
  const segments = segmentsFrom(archive, base.start);
  const last = segments.at(-1);
  if (!last || last.start + BigInt(archive.segmentBytes) < base.end) {
    throw new Error(`The WAL of the base backup ${base.folder} is missing from the archive.`);
  }
  return { archive, base, segments, until: target === "latest" ? null : target.at };
}

function chooseArchive(usable: readonly ArchiveContent[], { target, current }: ChooseOptions): ArchiveContent {
  const ofCurrent = usable.filter(({ folder }) => basename(folder) === current);
  if (target === "latest") return preferred(ofCurrent, usable, "several WAL archives");
  const covering = usable.filter((archive) => covers(archive, target.at));
  if (covering.length > 0) {
    return preferred(
      covering.filter((archive) => ofCurrent.includes(archive)),
      covering,
      `several WAL archives with ${target.at.toISOString()}`,
    );
  }
  throw new Error(`${target.at.toISOString()} cannot be restored. ${describeRanges(usable)}`);
}

function preferred(first: readonly ArchiveContent[], others: readonly ArchiveContent[], which: string): ArchiveContent {
  const [chosen, ...more] = first.length > 0 ? first : others;
  if (chosen && more.length === 0) return chosen;
  const list = others.map(({ folder }) => folder).join("\n  ");
  throw new Error(`There are ${which}. Name one with --from:\n  ${list}`);
}

function covers(archive: ArchiveContent, at: Date): boolean {
  const range = recoverableRange(archive);
  return range !== null && range.from <= at && at <= range.to;
}

/** Describes the ranges for messages. */
function describeRanges(archives: readonly ArchiveContent[]): string {
  const ranges = archives.map(recoverableRange).filter((range) => range !== null);
  if (ranges.length === 0) return "No time can be restored yet.";
  const list = ranges.map(({ from, to }) => `from ${from.toISOString()} to ${to.toISOString()}`);
  return `Times that can be restored: ${list.join("; ")}. \`--at latest\` restores everything that is archived.`;
}
