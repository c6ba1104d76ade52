import { useEffect, useRef, useState } from "preact/hooks";
import type { ChannelStatus, ReceivedChange } from "../../api/realtime.ts";
import { liveChanges } from "../../api/realtime.ts";
import type { TableRow } from "../../api/rest-query.ts";
import type { RowWindows } from "../rows/row-windows.ts";
import { keyText } from "./edited-table.ts";
import { type RowChanger, readRows } from "./row-changes.ts";

export type LiveRows = {
  /** The status; null if the table is not published. */
  readonly status: ChannelStatus | null;
  /** The changes and deletes of rows since they were read, by the texts of their keys. */
  readonly marks: ReadonlyMap<string, "changed" | "deleted">;
  readonly newRows: number;
  readonly forgetNewRows: () => void;
};

/** The time for which changes are collected, so that one request reads many. */
const COLLECT_MS = 80;
const SHOWN_MS = 1600;
const MAX_READ = 200;

/** Follows the changes of a table: reads rows in memory again and marks them when others change them. */
export function useLiveRows(changer: RowChanger, windows: RowWindows, isOwn: (key: string) => boolean): LiveRows {
  const { table, key } = changer;
  const { schema, name, published } = table;
  const [status, setStatus] = useState<ChannelStatus | null>(null);
  const [marks, setMarks] = useState<LiveRows["marks"]>(new Map());
  const [newRows, setNewRows] = useState(0);
  const current = useRef({ changer, windows, isOwn });
  current.current = { changer, windows, isOwn };
  useEffect(() => {
    setMarks(new Map());
    setNewRows(0);
    return windows.subscribe(() =>
      setMarks((shown) => (shown.size === 0 ? shown : withoutMissing(shown, windows, key))),
    );
  }, [windows]);
  useEffect(() => {
    if (!published || key.length === 0) {
      setStatus(null);
      return undefined;
    }
    const mark = (texts: readonly string[], as: "changed" | "deleted") => {
      setMarks((before) => new Map([...before, ...texts.map((text) => [text, as] as const)]));
      if (as === "changed") setTimeout(() => setMarks((before) => without(before, texts)), SHOWN_MS);
    };
    const collector = new ChangeCollector(
      () => current.current,
      mark,
      (count) => setNewRows((before) => before + count),
    );
    const subscription = { event: "*", schema, table: name, select: [] } as const;
    let isStale = false;
    const onStatus = (next: ChannelStatus) => {
      setStatus(next);
      if (next.state === "joined" && isStale) current.current.windows.refresh();
      isStale = next.state === "refused" || (isStale && next.state !== "joined");
    };
    const leave = liveChanges().subscribe([subscription], { onChange: collector.add, onStatus });
    return () => {
      collector.close();
      leave();
    };
  }, [schema, name, published, key.join()]);
  return { status, marks, newRows, forgetNewRows: () => setNewRows(0) };
}

type LiveContext = {
  readonly changer: RowChanger;
  readonly windows: RowWindows;
  /** True if the row was inserted here. */
  readonly isOwn: (key: string) => boolean;
};

type Mark = (texts: readonly string[], as: "changed" | "deleted") => void;

/** Reads changed rows again as the caller, because events have only their keys. */
class ChangeCollector {
  readonly #current: () => LiveContext;
  readonly #mark: Mark;
  readonly #onInsert: (count: number) => void;
  #changed = new Map<string, TableRow>();
  #deleted = new Set<string>();
  #inserted = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(current: () => LiveContext, mark: Mark, onInsert: (count: number) => void) {
    this.#current = current;
    this.#mark = mark;
    this.#onInsert = onInsert;
  }

  readonly add = ({ type, record, old_record: old }: ReceivedChange): void => {
    const { changer } = this.#current();
    const keyOf = (from: ReceivedChange["record"]): TableRow =>
      Object.fromEntries(changer.key.map((name) => [name, from?.[name] == null ? null : String(from[name])]));
    if (type === "DELETE") this.#deleted.add(keyText(changer.key, keyOf(old)));
    else if (type === "INSERT") this.#inserted.add(keyText(changer.key, keyOf(record)));
    else this.#changed.set(keyText(changer.key, keyOf(record)), keyOf(record));
    this.#timer ??= setTimeout(() => void this.#show(), COLLECT_MS);
  };

  close(): void {
    clearTimeout(this.#timer);
  }

  async #show(): Promise<void> {
    const { changer, windows, isOwn } = this.#current();
    const [changed, deleted, inserted] = [this.#changed, this.#deleted, this.#inserted];
    [this.#changed, this.#deleted, this.#inserted, this.#timer] = [new Map(), new Set(), new Set(), undefined];
    const isShown = (text: string) => windows.indexOf((row) => keyText(changer.key, row) === text) >= 0;
    const gone = [...deleted].filter(isShown);
    if (gone.length > 0) this.#mark(gone, "deleted");
    const unseen = [...inserted].filter((text) => !isOwn(text) && !isShown(text));
    if (unseen.length > 0) this.#onInsert(unseen.length);
    const wanted = [...changed].filter(([text]) => !deleted.has(text) && isShown(text)).slice(0, MAX_READ);
    if (wanted.length === 0) return;
    const rows = await readRows(
      changer,
      wanted.map(([, row]) => row),
    ).catch(() => []);
    const differing = rows.filter((row) => replaceIfDifferent(windows, changer.key, row));
    if (differing.length > 0)
      this.#mark(
        differing.map((row) => keyText(changer.key, row)),
        "changed",
      );
  }
}

/** Replaces the row if its values differ; the caller's own changes are shown already. */
function replaceIfDifferent(windows: RowWindows, key: readonly string[], row: TableRow): boolean {
  const text = keyText(key, row);
  const index = windows.indexOf((each) => keyText(key, each) === text);
  const shown = windows.rowAt(index);
  if (!shown || Object.keys(row).every((name) => row[name] === shown[name])) return false;
  windows.replaceRow(index, { ...shown, ...row });
  return true;
}

function without(marks: LiveRows["marks"], texts: readonly string[]): LiveRows["marks"] {
  return new Map([...marks].filter(([text, as]) => as === "deleted" || !texts.includes(text)));
}

/** Removes the marks of rows that are missing after a reload. */
function withoutMissing(marks: LiveRows["marks"], windows: RowWindows, key: readonly string[]): LiveRows["marks"] {
  const kept = [...marks].filter(([text]) => windows.indexOf((row) => keyText(key, row) === text) >= 0);
  return kept.length === marks.size ? marks : new Map(kept);
}
