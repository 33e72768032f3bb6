// The page's state in the address: #view=timeline&from=…&to=…&event=…, so that a place can be sent to someone.

export type Place = Record<string, string>;

/** Returns what the address says. */
export function readPlace(): Place {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Changes some of what the address says; undefined takes a key out. Never adds a step to the history. */
export function writePlace(change: Record<string, string | undefined>): void {
  const place = { ...readPlace(), ...change };
  const kept = Object.entries(place).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '');
  const hash = new URLSearchParams(kept).toString();
  try {
    history.replaceState(null, '', hash ? `#${hash}` : '#');
  } catch {
    // In a sandboxed frame (a notebook) the address cannot be changed; the page works without.
  }
}

/** Brings a part of the page into sight, its begin above. */
export function scrollTo(id: string): void {
  document.getElementById(id)?.scrollIntoView();
}

/** Returns whether a key is pressed with another one that makes it the browser's. */
export function isCombined(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}

export type Listen = <K extends keyof HTMLElementEventMap>(kind: K, act: (event: HTMLElementEventMap[K]) => void) => void;

/** Returns what listens to an element until a signal; what is heard may be kept from the browser. */
export function listener(element: HTMLElement, signal: AbortSignal): Listen {
  return (kind, act) => element.addEventListener(kind, act, { signal, passive: false });
}

/** Puts a text on the clipboard; returns whether that was allowed. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
