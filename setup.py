"""Builds the compiled scanner where a C compiler is there; without one the portable scanner serves."""

from setuptools import Extension, setup

try:
    from Cython.Build import cythonize
except ImportError:
    modules = []
else:
    modules = cythonize([Extension("uncork.readers.scan", ["src/uncork/readers/scan.pyx"])], language_level=3)
    for module in modules:
        module.optional = True  # a failure to compile is told, and the installation goes on

setup(ext_modules=modules)
