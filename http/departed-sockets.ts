import { collectGarbage } from "#runtime";

/** A collection pauses the process for about a millisecond per megabyte in use: fewer sockets are not worth it. */
const MANY = 1000;

/**
 * Returns the memory of many sockets to the system after they have left. V8 collects garbage only while something is allocated: an idle process
 * would keep it for hours.
 */
export class DepartedSockets {
  #most = 0;
  #previous = 0;

  /** Receives the number of open sockets occasionally. Waits until as many are open as in the call before. */
  observe(open: number): void {
    this.#most = Math.max(this.#most, open);
    const haveLeft = this.#most - open >= MANY && this.#previous === open;
    this.#previous = open;
    if (!haveLeft) return;
    this.#most = open;
    collectGarbage();
  }
}
