/** Collects events that tests wait for. */
export class Inbox<Item> {
  readonly items: Item[] = [];
  #news = Promise.withResolvers<void>();

  readonly put = (item: Item): void => {
    this.items.push(item);
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  };

  /** The first match among past and future events. */
  async until(isWanted: (item: Item) => boolean): Promise<Item> {
    for (let looked = 0; ; ) {
      while (looked < this.items.length) {
        const item = this.items[looked++]!;
        if (isWanted(item)) return item;
      }
      await this.#news.promise;
    }
  }

  async count(length: number): Promise<Item[]> {
    while (this.items.length < length) await this.#news.promise;
    return this.items;
  }
}
