// The first byte of each message (https://www.postgresql.org/docs/current/protocol-message-formats.html).

/** From us to the server. */
export const BIND = 0x42;
export const CLOSE = 0x43;
export const DESCRIBE = 0x44;
export const EXECUTE = 0x45;
export const PARSE = 0x50;
export const SYNC = 0x53;

/** From the server to us. */
export const PARSE_COMPLETE = 0x31;
export const BIND_COMPLETE = 0x32;
export const CLOSE_COMPLETE = 0x33;
export const NOTIFICATION = 0x41;
export const COMMAND_COMPLETE = 0x43;
export const DATA_ROW = 0x44;
export const ERROR = 0x45;
export const EMPTY_QUERY = 0x49;
export const NOTICE = 0x4e;
export const PARAMETER_STATUS = 0x53;
export const ROW_DESCRIPTION = 0x54;
export const READY_FOR_QUERY = 0x5a;
export const NO_DATA = 0x6e;

/** What Describe and Close are about. */
export const PORTAL = 0x50;
export const STATEMENT = 0x53;

/** ReadyForQuery: no transaction is open. */
export const IDLE = 0x49;
