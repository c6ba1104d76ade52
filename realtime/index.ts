export { type FilterCondition, parseFilter } from "./changes/row-filter.ts";
export { openRealtime, type Realtime, SOCKET_PATH } from "./realtime.ts";
export { resuming } from "./resuming-socket.ts";
