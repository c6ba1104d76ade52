import type { Change, Row, Transaction } from "../../engine/changes/changes.ts";
import { toApiError } from "../../engine/errors.ts";
import { spellMessage } from "../protocol.ts";
import { socketFrame } from "../socket-frame.ts";
import { type Audience, type Group, type Member, partsOf } from "./audience.ts";
import { ChangeText, type Told, type View } from "./change-text.ts";
import type { Judge } from "./judge.ts";
import type { Image, Verdict } from "./judgement.ts";
import type { Subscriber } from "./subscriber.ts";

/** A change on its way. */
export type Item = { readonly change: Change; readonly transaction: Transaction };

/** What became of the row before and the row after, for one group. */
type Sides = { readonly before: Verdict | null; readonly after: Verdict | null };

const UNASKED = () => null;

/** Some changes of one table, in their order, and those to whom they matter. */
export class Delivery {
  readonly #items: readonly Item[];
  readonly #audience: Audience;
  readonly #sides = new Map<Group, ReadonlyMap<Item, Sides>>();
  readonly #images = new Map<Row, Image>();

  constructor(items: readonly Item[], audience: Audience) {
    this.#items = items;
    this.#audience = audience;
  }

  /** Has each group's view of the changes judged. A group that cannot be judged is told that it has missed something. */
  async judge(judge: Judge): Promise<void> {
    const { table, groups } = this.#audience;
    const judgeOne = async (group: Group): Promise<void> => {
      try {
        this.#sides.set(group, await this.#judgeFor(group, judge));
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

  /** Tells those who are still there of one change. */
  tell(item: Item, isThere: (subscriber: Subscriber) => boolean): void {
    const text = new ChangeText(item.change, item.transaction, this.#audience.table);
    const frames = new Map<View, Map<string, Buffer>>();
    for (const [group, byItem] of this.#sides) {
      const sides = byItem.get(item);
      if (!sides?.before && !sides?.after) continue;
      for (const member of group.members) {
        if (!isThere(member.subscriber)) continue;
        const told = this.#toldTo(member, item, sides);
        if (told) member.subscriber.outbox.send(frameOf(member.subscriber, told, text, frames));
      }
    }
  }

  async #judgeFor(group: Group, judge: Judge): Promise<ReadonlyMap<Item, Sides>> {
    const images: Image[] = [];
    const place = (row: Row | null, { change }: Item) => row && images.push(this.#imageOf(row, change)) - 1;
    const places = this.#items
      .filter((item) => group.members.some((member) => this.#mayConcern(member, item)))
      .map((item) => ({
        item,
        before: place(judged(item.change.old, group), item),
        after: place(judged(item.change.new, group), item),
      }));
    if (images.length === 0) return new Map();
    const verdicts = await judge(group, this.#audience.table, images);
    const visible = (at: number | null) => (at !== null && verdicts[at]!.isVisible ? verdicts[at]! : null);
    return new Map(places.map(({ item, before, after }) => [item, { before: visible(before), after: visible(after) }]));
  }

  /** As far as that can be said without asking. */
  #mayConcern({ bindings }: Member, { change }: Item): boolean {
    const rows = [change.new, change.old].filter((row) => row !== null).map((row) => this.#imageOf(row, change));
    return bindings.some(({ event, tests }) => {
      const isAwaited = event === "*" || event === change.kind || (event === "DELETE" && change.kind === "UPDATE");
      const passes = (image: Image) =>
        tests.every(({ questions, column, passes }) => questions.length > 0 || passes(image.get(column), UNASKED));
      return isAwaited && rows.some(passes);
    });
  }

  #toldTo({ bindings, view }: Member, { change }: Item, { before, after }: Sides): ToldTo | null {
    const type = after ? (change.kind as Told["type"]) : "DELETE";
    const { answers } = (after ?? before)!;
    const image = this.#imageOf((after ? change.new : change.old)!, change);
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
    const image = new Map(relation.columns.map(({ name }, at) => [name, row[at]]));
    this.#images.set(row, image);
    return image;
  }
}

/** A row that the log has in part only, as it may with another replica identity than full, cannot be judged: policies could read any column. */
function judged(row: Row | null, { rows }: Group): Row | null {
  return rows === "all" || !row?.includes(undefined) ? row : null;
}

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
