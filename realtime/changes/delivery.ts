import type { Change, Row, Transaction } from "../../engine/changes/changes.ts";
import { isTimeout } from "../../engine/database/faults.ts";
import { toApiError } from "../../engine/errors.ts";
import type { Outbox } from "../outbox.ts";
import { spellMessage } from "../protocol.ts";
import { socketFrame } from "../socket-frame.ts";
import { type Audience, type Group, type Member, partsOf } from "./audience.ts";
import type { Binding } from "./binding.ts";
import { ChangeText, type Told, type View } from "./change-text.ts";
import type { CheckVisibility } from "./check-visibility.ts";
import type { FilterRequest, FilterResult, Filters } from "./filters.ts";
import { rowBefore } from "./row-before.ts";
import type { Image } from "./row-images.ts";
import type { Cell } from "./row-test.ts";
import { isSameColumn } from "./same-column.ts";
import type { Subscriber } from "./subscriber.ts";

/** A change on its way. */
export type Item = { readonly change: Change; readonly transaction: Transaction };

/** Rows that are checked at once, and which of them are a change's row before and its row after. */
type Check = {
  readonly images: readonly Image[];
  readonly places: ReadonlyMap<Item, { readonly before: number | null; readonly after: number | null }>;
};
/** A check, and which of its rows are visible. */
type Checked = Check & { readonly visible: readonly boolean[] };

/** How a group sees a change: an UPDATE of a row that it sees no longer is a DELETE. */
type Seen = Pick<Told, "type" | "withOld"> & { readonly image: Image };

/** What was spelled of a change. */
type Spelled = { readonly text: ChangeText; readonly frames: Map<View, Map<string, Buffer>> };

const UNASKED = () => null;

/** Some changes of one table, in their order, and those to whom they matter. */
export class Delivery {
  readonly #items: readonly Item[];
  readonly #audience: Audience;
  readonly #history: string;
  /** The row before of each. */
  readonly #before: ReadonlyMap<Item, Row | null>;
  readonly #checked = new Map<Group, Checked>();
  readonly #images = new Map<Row, Image>();
  /** Made once for all whom all changes concern: there may be thousands of groups. */
  readonly #wholeChecks = new Map<boolean, Check>();
  readonly #filtered = new Map<Member, FilterResult>();
  readonly #spelled = new Map<Item, Spelled>();
  /** Where each of those who are told later is a member. */
  #places: ReadonlyMap<Subscriber, readonly (readonly [Member, Checked])[]> | null = null;

  constructor(items: readonly Item[], audience: Audience, history: string) {
    this.#items = items;
    this.#audience = audience;
    this.#history = history;
    this.#before = new Map(items.map((item) => [item, rowBefore(item.change, audience.table)]));
  }

  /** Finds out what each group sees of the changes. One of which that cannot be found out is told that it has missed something. */
  async check(checkVisibility: CheckVisibility): Promise<void> {
    const { table, groups } = this.#audience;
    const checkOne = async (group: Group): Promise<void> => {
      try {
        const check = this.#checkOf(group);
        const visible = check.images.length > 0 ? await checkVisibility(group, table, check.images) : [];
        this.#checked.set(group, { ...check, visible });
      } catch (error) {
        const parts = isTimeout(error) || toApiError(error).status === 503 ? [] : partsOf(group);
        if (parts.length > 1) {
          await Promise.all(parts.map(checkOne));
          return;
        }
        const reason = `the policies of ${table.name} could not be asked (${toApiError(error).message})`;
        for (const { subscriber } of group.members) subscriber.lose(reason);
      }
    };
    await Promise.all(groups.map(checkOne));
  }

  /** Begins to apply filters to what was found visible. Answers with those who cannot be told before that has come to an end. */
  filter(
    filters: Pick<Filters, "apply">,
    isThere: (subscriber: Subscriber) => boolean,
  ): Map<Subscriber, Promise<void>[]> {
    const waiting = new Map<Subscriber, Promise<void>[]>();
    for (const [{ caller, members }, checked] of this.#checked) {
      const requests = members.filter(({ asks }) => asks).flatMap((member) => this.#filterRequest(member, checked));
      if (requests.length === 0) continue;
      for (const [member, result] of filters.apply({ caller, table: this.#audience.table, requests, isThere })) {
        const known = result.then((answers) => void this.#filtered.set(member, answers));
        // Nobody waits for it who has left by then.
        known.catch(() => {});
        waiting.set(member.subscriber, [...(waiting.get(member.subscriber) ?? []), known]);
      }
    }
    return waiting;
  }

  /** Tells those of one change who are not told later. Answers with whom to wait for before more is told. */
  tell(item: Item, isTold: (subscriber: Subscriber) => boolean): readonly Outbox[] {
    const spelled = this.#spell(item);
    const due: Outbox[] = [];
    for (const [group, checked] of this.#checked) {
      const seen = this.#seenOf(item, checked);
      if (!seen) continue;
      for (const member of group.members) {
        const { subscriber } = member;
        if (!isTold(subscriber)) continue;
        this.#tellMember(member, seen, spelled);
        if (subscriber.outbox.isDue) due.push(subscriber.outbox);
      }
    }
    return due;
  }

  /** Tells one of a change later, when the filters have been applied. */
  tellLater(item: Item, subscriber: Subscriber): void {
    for (const [member, checked] of this.#placesOf(subscriber)) {
      const seen = this.#seenOf(item, checked);
      if (!seen) continue;
      const spelled = this.#spelled.get(item) ?? this.#spell(item);
      this.#spelled.set(item, spelled);
      this.#tellMember(member, seen, spelled);
    }
  }

  #placesOf(subscriber: Subscriber): readonly (readonly [Member, Checked])[] {
    if (!this.#places) {
      const all = [...this.#checked].flatMap(([{ members }, checked]) =>
        members.map((member) => [member, checked] as const),
      );
      this.#places = Map.groupBy(all, ([member]) => member.subscriber);
    }
    return this.#places.get(subscriber) ?? [];
  }

  #spell(item: Item): Spelled {
    const change = { ...item.change, old: this.#before.get(item)! };
    const text = new ChangeText(change, item.transaction, this.#audience.table, this.#history);
    return { text, frames: new Map() };
  }

  #checkOf(group: Group): Check {
    const items = this.#items.filter((item) => group.members.some((member) => this.#mayConcern(member, item)));
    const checksParts = group.rows === "all";
    if (items.length < this.#items.length) return this.#makeCheck(items, checksParts);
    const check = this.#wholeChecks.get(checksParts) ?? this.#makeCheck(items, checksParts);
    this.#wholeChecks.set(checksParts, check);
    return check;
  }

  /** A row that the log has in part only, as it may with another replica identity than full, cannot be judged: policies could read any column. */
  #makeCheck(items: readonly Item[], checksParts: boolean): Check {
    const images: Image[] = [];
    const place = (row: Row | null, change: Change) =>
      row && (checksParts || !row.includes(undefined)) ? images.push(this.#imageOf(row, change)) - 1 : null;
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
      return isAwaited && images.some((image) => tests.every((test) => mayPass(test, image)));
    });
  }

  #seenOf(item: Item, { places, visible }: Checked): Seen | null {
    const place = places.get(item);
    if (!place) return null;
    const { change } = item;
    const seesBefore = place.before !== null && visible[place.before]!;
    const seesAfter = place.after !== null && visible[place.after]!;
    if (!seesBefore && !seesAfter) return null;
    return {
      type: seesAfter ? (change.kind as Told["type"]) : "DELETE",
      withOld: seesBefore || this.#before.get(item) === null,
      image: this.#imageOf((seesAfter ? change.new : this.#before.get(item))!, change),
    };
  }

  /** Of the rows that the member sees those for which a filter has to be asked. */
  #filterRequest(member: Member, checked: Checked): FilterRequest[] {
    const images = this.#items.flatMap((item) => {
      const seen = this.#seenOf(item, checked);
      if (!seen) return [];
      const isAsked = ({ event, tests }: Binding) =>
        isFor(event, seen) && tests.some(asksOf) && tests.every((test) => mayPass(test, seen.image));
      return member.bindings.some(isAsked) ? [seen.image] : [];
    });
    return images.length > 0 ? [{ member, images }] : [];
  }

  #tellMember(member: Member, seen: Seen, { text, frames }: Spelled): void {
    const { subscriber, bindings, view } = member;
    const { image, type, withOld } = seen;
    const answers = this.#filtered.get(member)?.get(image) ?? UNASKED;
    const matching = bindings.filter(
      ({ event, tests }) => isFor(event, seen) && tests.every((test) => test.passes(image.get(test.column), answers)),
    );
    if (matching.length === 0) return;
    const ids = [...new Set(matching.map(({ id }) => id))].join(",");
    subscriber.outbox.send(frameOf(subscriber, { ids, type, view, withOld }, text, frames));
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

type Test = Binding["tests"][number];

function asksOf({ questions }: Test): boolean {
  return questions.length > 0;
}

/** As far as that can be said without asking. */
function mayPass(test: Test, image: Image): boolean {
  return asksOf(test) || test.passes(image.get(test.column), UNASKED);
}

function isFor(event: Binding["event"], { type }: Seen): boolean {
  return event === "*" || event === type;
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
