/**
 * Writes leave in the order in which they were made, all that wait in one batch, which is one transaction. What waits survives the end
 * of the page. The key of a batch is the same in each attempt, so a batch whose response was lost is not written twice.
 */
export class Outbox {
  #send;
  #storage;
  /** `{ id, operation }`; those with a `batch` were sent with that key, and are sent with it again. */
  #waiting;
  #promises = new Map();
  #isSending = false;

  /** `send(operations, key)` returns the rows, or throws an error, with `isFinal` if another attempt would be refused again. */
  constructor(send, storage = localStorage) {
    this.#send = send;
    this.#storage = storage;
    this.#waiting = JSON.parse(storage.getItem("outbox") ?? "[]");
    addEventListener("online", () => this.flush());
  }

  get length() {
    return this.#waiting.length;
  }

  /** Resolves with the written row. */
  add(operation) {
    const id = crypto.randomUUID();
    const { promise, ...settle } = Promise.withResolvers();
    this.#promises.set(id, settle);
    this.#keep([...this.#waiting, { id, operation }]);
    void this.flush();
    return promise;
  }

  async flush() {
    if (this.#isSending || !navigator.onLine || this.#waiting.length === 0) return;
    this.#isSending = true;
    const key = this.#waiting[0].batch ?? crypto.randomUUID();
    if (!this.#waiting[0].batch) this.#keep(this.#waiting.map((write) => ({ ...write, batch: key })));
    const writes = this.#waiting.filter(({ batch }) => batch === key);
    try {
      const rows = await this.#send(
        writes.map(({ operation }) => operation),
        key,
      );
      this.#end(writes, ({ resolve }, index) => resolve(rows[index]));
    } catch (error) {
      if (error.isFinal) this.#end(writes, ({ reject }) => reject(error));
      else setTimeout(() => this.flush(), 2_000);
    } finally {
      this.#isSending = false;
    }
    if (this.#waiting.length > 0 && !this.#waiting[0].batch) void this.flush();
  }

  #end(writes, settle) {
    this.#keep(this.#waiting.filter((write) => !writes.includes(write)));
    for (const [index, { id }] of writes.entries()) {
      const promise = this.#promises.get(id);
      if (promise) settle(promise, index);
      this.#promises.delete(id);
    }
  }

  #keep(writes) {
    this.#waiting = writes;
    this.#storage.setItem("outbox", JSON.stringify(writes));
  }
}
