// Reads the blocks that Python packed: gzip( u32 header length | header as JSON | columns ), in base64.
// Counterpart of src/uncork/measure/views/packed.py; test/decode.test.ts holds the two together.

export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array | Float32Array;

export type Block<Meta> = { meta: Meta; columns: Record<string, Column> };

type ColumnHeader = { name: string; n: number; width: 1 | 2 | 4 | 8; coding: 'plain' | 'delta' | 'float' };

/** Returns the bytes behind a base64 text. */
export function fromBase64(text: string): Uint8Array {
  const modern = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array };
  if (modern.fromBase64) return modern.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Returns the bytes inside a gzip stream. */
export async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Returns the header and the decoded columns of a block. */
export function unpack<Meta>(bytes: Uint8Array): Block<Meta> {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))) as { meta: Meta; columns: ColumnHeader[] };
  const columns: Record<string, Column> = {};
  let offset = 4 + size;
  for (const { name, n, width, coding } of header.columns) {
    const part = bytes.subarray(offset, offset + n * width);
    offset += n * width;
    const whole = untranspose(part, n, width);
    columns[name] = coding === 'delta' ? undelta(whole) : coding === 'float' ? new Float32Array((whole as Uint32Array).buffer) : whole;
  }
  return { meta: header.meta, columns };
}

/** Returns the block embedded in a script element, which is removed: its text would stay in memory twice. */
export async function embedded<Meta>(id: string): Promise<Block<Meta> | null> {
  const element = document.getElementById(id);
  const text = element?.textContent;
  if (!element || !text) return null;
  element.remove();
  return unpack<Meta>(await gunzip(fromBase64(text.trim())));
}

function untranspose(part: Uint8Array, n: number, width: number): Column {
  if (width === 1) return part.slice();
  if (width === 2) {
    const out = new Uint16Array(n);
    for (let i = 0; i < n; i++) out[i] = part[i] | (part[n + i] << 8);
    return out;
  }
  const low = new Uint32Array(n);
  for (let i = 0; i < n; i++) low[i] = part[i] | (part[n + i] << 8) | (part[2 * n + i] << 16) | (part[3 * n + i] << 24);
  if (width === 4) return low;
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const high = part[4 * n + i] | (part[5 * n + i] << 8) | (part[6 * n + i] << 16) | (part[7 * n + i] << 24);
    out[i] = (high >>> 0) * 4294967296 + low[i];
  }
  return out;
}

/** Undoes zigzag and differences; in doubles, since a sum may pass 2³² (and never passes 2⁵³ ns, 104 days). */
function undelta(codes: Column): Float64Array {
  const out = new Float64Array(codes.length);
  let value = 0;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    value += code % 2 ? -(code + 1) / 2 : code / 2;
    out[i] = value;
  }
  return out;
}
