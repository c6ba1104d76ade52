import type { Change, Row, Transaction } from "../../engine/changes/changes.ts";
import { toApiError } from "../../engine/errors.ts";
import type { Outbox } from "../outbox.ts";
import { spellMessage } from "../protocol.ts";
import { socketFrame } from "../socket-frame.ts";
import { type Audience, type Group, type Member, partsOf } from "./audience.ts";
import { ChangeText, type Told, type View } from "./change-text.ts";
import type { Judge } from "./judge.ts";
import type { Image, Verdict } from "./judgement.ts";
import { rowBefore } from "./row-before.ts";
import type { Cell } from "./row-test.ts";
import { isSameColumn } from "./same-column.ts";
import type { Subscriber } from "./subscriber.ts";

/** A change on its way. */
export type Item = { readonly change: Change; readonly transaction: Transaction };

/** What is asked of Postgres at once, and which of it is a change's row before and its row after. */
type Inquiry = {
  readonly images: readonly Image[];
  readonly places: ReadonlyMap<Item, { readonly before: number | null; readonly after: number | null }>;
};
type Judgement = { readonly inquiry: Inquiry; readonly verdicts: readonly Verdict[] };

const UNASKED = () => null;

/** Some changes of one table, in their order, and those to whom they matter. */
export class Delivery {
  readonly #items: readonly Item[];
  readonly #audience: Audience;
  readonly #history: string;
  /** The row before of each. */
  readonly #before: ReadonlyMap<Item, Row | null>;
  readonly #judgements = new Map<Group, Judgement>();
  readonly #images = new Map<Row, Image>();
  /** Made once for all whom all changes concern: there may be thousands of groups. */
  readonly #wholeInquiries = new Map<boolean, Inquiry>();

  constructor(items: readonly Item[], audience: Audience, history: string) {
    this.#items = items;
    this.#audience = audience;
    this.#history = history;
    this.#before = new Map(items.map((item) => [item, rowBefore(item.change, audience.table)]));
  }

  /** Has each group's view of the changes judged. A group that cannot be judged is told that it has missed something. */
  async judge(judge: Judge): Promise<void> {
    const { table, groups } = this.#audience;
    const judgeOne = async (group: Group): Promise<void> => {
      try {
        const inquiry = this.#inquiryOf(group);
        const verdicts = inquiry.images.length > 0 ? await judge(group, table, inquiry.images) : [];
        this.#judgements.set(group, { inquiry, verdicts });
      } catch (error) {
        const parts = partsOf(group);
        if (parts.length > 1) {
          await Promise.all(parts.map(judgeOne));
          return;
        }
        const reason = `the policies of ${table.name} could not be asked (${toApiError(error).message})`;
        for (const { subscriber } of group.members) subscriber.lose(reason);
      }
    };
    await Promise.all(groups.map(judgeOne));
  }

  /** Tells those who are still there of one change. Answers with whom to wait for before more is told. */
  tell(item: Item, isThere: (subscriber: Subscriber) => boolean): readonly Outbox[] {
    const change = { ...item.change, old: this.#before.get(item)! };
    const text = new ChangeText(change, item.transaction, this.#audience.table, this.#history);
    const frames = new Map<View, Map<string, Buffer>>();
    const due: Outbox[] = [];
    for (const [group, { inquiry, verdicts }] of this.#judgements) {
      const place = inquiry.places.get(item);
      if (!place) continue;
      const visible = (at: number | null) => (at !== null && verdicts[at]!.isVisible ? verdicts[at]! : null);
      const sides = { before: visible(place.before), after: visible(place.after) };
      if (!sides.before && !sides.after) continue;
      for (const member of group.members) {
        const { subscriber } = member;
        if (!isThere(subscriber)) continue;
        const told = this.#toldTo(member, item, sides);
        if (!told) continue;
        subscriber.outbox.send(frameOf(subscriber, told, text, frames));
        if (subscriber.outbox.isDue) due.push(subscriber.outbox);
      }
    }
    return due;
  }

  #inquiryOf(group: Group): Inquiry {
    const items = this.#items.filter((item) => group.members.some((member) => this.#mayConcern(member, item)));
    const judgesParts = group.rows === "all";
    if (items.length < this.#items.length) return this.#makeInquiry(items, judgesParts);
    const inquiry = this.#wholeInquiries.get(judgesParts) ?? this.#makeInquiry(items, judgesParts);
    this.#wholeInquiries.set(judgesParts, inquiry);
    return inquiry;
  }

  /** A row that the log has in part only, as it may with another replica identity than full, cannot be judged: policies could read any column. */
  #makeInquiry(items: readonly Item[], judgesParts: boolean): Inquiry {
    const images: Image[] = [];
    const place = (row: Row | null, change: Change) =>
      row && (judgesParts || !row.includes(undefined)) ? images.push(this.#imageOf(row, change)) - 1 : null;
    const places = items.map(
      (item) =>
        [
          item,
          { before: place(this.#before.get(item)!, item.change), after: place(item.change.new, item.change) },
        ] as const,
    );
    return { images, places: new Map(places) };
  }

  /** As far as that can be said without asking. */
  #mayConcern({ bindings }: Member, item: Item): boolean {
    const { change } = item;
    const rows = [change.new, this.#before.get(item)!].filter((row) => row !== null);
    const images = rows.map((row) => this.#imageOf(row, change));
    return bindings.some(({ event, tests }) => {
      const isAwaited = event === "*" || event === change.kind || (event === "DELETE" && change.kind === "UPDATE");
      const passes = (image: Image) =>
        tests.every(({ questions, column, passes }) => questions.length > 0 || passes(image.get(column), UNASKED));
      return isAwaited && images.some(passes);
    });
  }

  #toldTo({ bindings, view }: Member, item: Item, { before, after }: Sides): ToldTo | null {
    const { change } = item;
    const type = after ? (change.kind as Told["type"]) : "DELETE";
    const { answers } = (after ?? before)!;
    const image = this.#imageOf((after ? change.new : this.#before.get(item))!, change);
    const matching = bindings.filter(
      ({ event, tests }) =>
        (event === "*" || event === type) && tests.every((test) => test.passes(image.get(test.column), answers)),
    );
    if (matching.length === 0) return null;
    const ids = [...new Set(matching.map(({ id }) => id))].join(",");
    return { ids, type, view, withOld: before !== null || change.old === null };
  }

  #imageOf(row: Row, { relation }: Change): Image {
    const known = this.#images.get(row);
    if (known) return known;
    const { table } = this.#audience;
    const image = new Map<string, Cell>();
    for (const [at, column] of relation.columns.entries()) {
      if (isSameColumn(table, column)) image.set(column.name, row[at]);
    }
    this.#images.set(row, image);
    return image;
  }
}

type Sides = { readonly before: Verdict | null; readonly after: Verdict | null };
type ToldTo = Told & { readonly ids: string };

/** The same bytes for all who are told the same under the same name. */
function frameOf(
  { version, topic }: Subscriber,
  { ids, ...told }: ToldTo,
  text: ChangeText,
  frames: Map<View, Map<string, Buffer>>,
): Buffer {
  const known = frames.get(told.view) ?? new Map<string, Buffer>();
  frames.set(told.view, known);
  const key = `${version} ${told.type} ${told.withOld} ${ids} ${topic}`;
  let frame = known.get(key);
  if (!frame) {
    const envelope = { joinRef: null, ref: null, topic, event: "postgres_changes" };
    frame = socketFrame("text", spellMessage(version, envelope, `{"ids":[${ids}],"data":${text.text(told)}}`));
    known.set(key, frame);
  }
  return frame;
}
