import { expect, test } from "vitest";
import type { ArchiveContent } from "../../../cluster/wal-archive/archive-folder.ts";
import { planRecovery } from "../../../cluster/wal-archive/choose-archive.ts";
import { findUnneeded, isExpired } from "../../../cluster/wal-archive/retention.ts";
import { segmentName, segmentStart } from "../../../cluster/wal-archive/wal-segments.ts";

const MB = 2 ** 20;
const layout = { timeline: 1, segmentBytes: 16 * MB };
const at = (hour: number) => new Date(Date.UTC(2026, 10, 22, hour));

/** Base backups at these hours, each in a segment of its own, and WAL until the last hour. */
function archive(
  folder: string,
  hours: readonly number[],
  until: number,
  missing: readonly number[] = [],
): ArchiveContent {
  const lsn = (hour: number) => BigInt(hour * layout.segmentBytes);
  return {
    ...layout,
    folder: `/backups/wal/${folder}`,
    systemIdentifier: "7",
    major: 18,
    bases: hours.map((hour) => ({
      folder: `base ${hour}`,
      start: lsn(hour) + 40n,
      end: lsn(hour) + 300n,
      completedAt: at(hour),
      bytes: 1,
    })),
    segments: Array.from({ length: until }, (_, hour) => hour)
      .filter((hour) => !missing.includes(hour))
      .map((hour) => ({
        name: segmentName(lsn(hour), layout),
        file: `${hour}`,
        start: lsn(hour),
        state: "compressed" as const,
      })),
    progress: { lsn: lsn(until), at: at(until) },
  };
}

const plan = (archives: readonly ArchiveContent[], hour: number | null, current: string | null = null) =>
  planRecovery(archives, { target: hour === null ? "latest" : { at: at(hour) }, current, now: at(23) });

test("names of segments are those of Postgres", () => {
  expect(segmentName(0x1_ff00_0001n, layout)).toBe("0000000100000001000000FF");
  expect(segmentName(0x2_0000_0000n, { timeline: 26, segmentBytes: MB })).toBe("0000001A0000000200000000");
  expect(segmentStart("0000000100000001000000FF", layout)).toBe(0x1_ff00_0000n);
  expect(segmentStart("0000000200000001000000FF", layout)).toBeNull();
});

test("recovery begins with the last base backup that was complete, and uses the WAL after it", () => {
  const { base, segments, until } = plan([archive("a", [1, 5, 9], 12)], 6);
  expect(base.folder).toBe("base 5");
  expect(segments.map(({ file }) => file)).toEqual(["5", "6", "7", "8", "9", "10", "11"]);
  expect(until).toEqual(at(6));
  expect(plan([archive("a", [1, 5, 9], 12)], null)).toMatchObject({ base: { folder: "base 9" }, until: null });
  expect(plan([archive("a", [1, 5, 9], 12)], 5).base.folder).toBe("base 5");
});

test("times that cannot be restored are refused with those that can", () => {
  const range = "from 2026-11-22T05:00:00.000Z to 2026-11-22T12:00:00.000Z";
  expect(() => plan([archive("a", [5], 12)], 4)).toThrow(
    `2026-11-22T04:00:00.000Z cannot be restored. Times that can be restored: ${range}`,
  );
  expect(() => plan([archive("a", [5], 12)], 13)).toThrow(range);
  expect(() => planRecovery([archive("a", [5], 12)], { target: { at: at(24) }, current: null, now: at(23) })).toThrow(
    "in the future",
  );
  expect(() => plan([], 4)).toThrow("There is no WAL archive. Set BACKUP_WAL=true");
  expect(() => plan([archive("a", [], 4)], 3)).toThrow("no complete base backup yet");
});

test("WAL after a gap is not used, and a base backup without its WAL is refused", () => {
  expect(plan([archive("a", [5], 12, [8])], 6).segments.map(({ file }) => file)).toEqual(["5", "6", "7"]);
  expect(() => plan([archive("a", [5], 12, [5])], 6)).toThrow("The WAL of the base backup base 5 is missing");
});

test("of several archives with the time, that of the present database is used, and otherwise one must be named", () => {
  const both = [archive("a", [5], 12), archive("b", [7], 15)];
  expect(plan(both, 6).archive.folder).toBe("/backups/wal/a");
  expect(plan(both, 14).archive.folder).toBe("/backups/wal/b");
  expect(plan(both, 8, "b").archive.folder).toBe("/backups/wal/b");
  expect(plan(both, 6, "b").archive.folder).toBe("/backups/wal/a");
  expect(() => plan(both, 8)).toThrow(/Name one with --from:\n {2}\/backups\/wal\/a\n {2}\/backups\/wal\/b/);
  expect(() => plan(both, null)).toThrow("Name one with --from");
});

test("only what no kept time needs is deleted", () => {
  const deleted = (hours: readonly number[], keepFrom: number) => {
    const { bases, segments } = findUnneeded(archive("a", hours, 12), at(keepFrom));
    return { bases: bases.map(({ folder }) => folder), segments: segments.map(({ file }) => file) };
  };
  expect(deleted([1, 5, 9], 8)).toEqual({ bases: ["base 1"], segments: ["0", "1", "2", "3", "4"] });
  expect(deleted([1, 5, 9], 9).bases).toEqual(["base 1", "base 5"]);
  // Until the next base backup, everything since the first one is needed.
  expect(deleted([1, 5, 9], 0)).toEqual({ bases: [], segments: ["0"] });
  expect(deleted([9], 23)).toEqual({ bases: [], segments: ["0", "1", "2", "3", "4", "5", "6", "7", "8"] });
  expect(deleted([], 23)).toEqual({ bases: [], segments: [] });
});

test("every kept time can be restored after a deletion", () => {
  const whole = archive("a", [1, 4, 5, 9, 11], 14);
  for (let keepFrom = 0; keepFrom <= 14; keepFrom++) {
    const { bases, segments } = findUnneeded(whole, at(keepFrom));
    const left = {
      ...whole,
      bases: whole.bases.filter((base) => !bases.includes(base)),
      segments: whole.segments.filter((segment) => !segments.includes(segment)),
    };
    for (let hour = Math.max(1, keepFrom); hour <= 14; hour++) {
      const [before, after] = [plan([whole], hour), plan([left], hour)];
      expect(after.base).toEqual(before.base);
      expect(after.segments).toEqual(before.segments);
    }
  }
});

test("an archive expires when all of its times are older than those that are kept", () => {
  expect(isExpired(archive("a", [1], 12), at(13))).toBe(true);
  expect(isExpired(archive("a", [1], 12), at(12))).toBe(false);
  expect(isExpired({ ...archive("a", [1], 12), progress: null }, at(1))).toBe(false);
  expect(isExpired(archive("a", [], 12), at(0))).toBe(true);
});
